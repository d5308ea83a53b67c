package auth

import "errors"

// Errors of checks.
var (
	// ErrUserEmpty is returned when a request that needs a user comes from nobody, and
	// when a user without a name is to be added.
	ErrUserEmpty = errors.New("user name is empty")
	// ErrPermissionDenied is returned when the caller may not do what it asks for.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrOldRevision is returned when users or roles have changed since the caller was
	// identified; it must identify itself again.
	ErrOldRevision = errors.New("revision of the caller's credentials is old")
)

// Errors of changes. Nothing was changed.
var (
	// ErrRootUserMissing is returned when access control is to be switched on and
	// there is no user root.
	ErrRootUserMissing = errors.New("root user does not exist")
	// ErrRootRoleMissing is returned when access control is to be switched on and the
	// user root has not the role root.
	ErrRootRoleMissing = errors.New("root user does not have root role")
	// ErrUserExists is returned when a user is added that is there already.
	ErrUserExists = errors.New("user name already exists")
	// ErrUserNotFound is returned when there is no such user.
	ErrUserNotFound = errors.New("user name not found")
	// ErrRoleEmpty is returned when a role without a name is to be added.
	ErrRoleEmpty = errors.New("role name is empty")
	// ErrRoleExists is returned when a role is added that is there already.
	ErrRoleExists = errors.New("role name already exists")
	// ErrRoleNotFound is returned when there is no such role.
	ErrRoleNotFound = errors.New("role name not found")
	// ErrRoleNotGranted is returned when a role is revoked that the user has not.
	ErrRoleNotGranted = errors.New("role is not granted to the user")
	// ErrPermissionNotGranted is returned when a permission is revoked that the
	// role has not.
	ErrPermissionNotGranted = errors.New("permission is not granted to the role")
	// ErrInvalidManagement is returned when a permission's range can hold no key, and
	// when a change would leave nobody in control while access control is on.
	ErrInvalidManagement = errors.New("invalid auth management")
)
