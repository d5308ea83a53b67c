package tools

import (
	"strings"
	"testing"
)

// Users, roles and what they may do, as an operator sets them up and takes them
// down again.
func TestUsersAndRoles(t *testing.T) {
	s := start(t, "--bcrypt-cost=4")
	s.expect("User root created", "user", "add", "root:secret")
	s.expect("Role root created", "role", "add", "root")
	s.expect("Role root is granted to user root", "user", "grant-role", "root", "root")
	s.expect("User reader created", "user", "add", "reader", "--new-user-password=pw")
	s.expect("Role read created", "role", "add", "read")
	s.expect("Role read updated", "role", "grant-permission", "read", "read", "--prefix=true", "a/")
	s.expect("Role read updated", "role", "grant-permission", "read", "readwrite", "b", "c")
	s.expect("Role read is granted to user reader", "user", "grant-role", "reader", "read")
	s.ctl("put", "a/1", "x")
	s.expect("Authentication Enabled", "auth", "enable")

	root, reader := "--user=root:secret", "--user=reader:pw"
	s.refused("user name is empty", "get", "a/1")
	s.refused("authentication failed, invalid user ID or password", "--user=reader:wrong", "get", "a/1")
	s.expect("a/1 | x", reader, "get", "a/1")
	s.refused("permission denied", reader, "put", "a/1", "y")
	s.expect("OK", reader, "put", "b", "y")
	s.refused("permission denied", reader, "get", "--prefix", "")
	s.refused("permission denied", reader, "user", "list")
	s.expect("reader | root", root, "user", "list")
	s.expect("read | root", root, "role", "list")
	if out := s.ctl(root, "user", "get", "reader", "--detail"); !strings.Contains(out, "[a/, a0) (prefix a/)") || !strings.Contains(out, "[b, c)") {
		t.Errorf("user get: %s", out)
	}
	if out := s.ctl(root, "auth", "status"); !strings.Contains(out, "Authentication Status: true") {
		t.Errorf("auth status: %s", out)
	}
	if out := s.ctlInput("new\n", root, "user", "passwd", "reader", "--interactive=false"); out != "Password updated" {
		t.Errorf("passwd: %s", out)
	}
	reader = "--user=reader:new"
	s.expect("a/1 | x", reader, "get", "a/1")
	s.expect("Permission of range [a/, a0) is revoked from role read", root, "role", "revoke-permission", "read", "--prefix=true", "a/")
	s.refused("permission denied", reader, "get", "a/1")
	s.expect("Role read is revoked from user reader", root, "user", "revoke-role", "reader", "read")
	s.refused("permission denied", reader, "get", "b")
	s.expect("User reader deleted", root, "user", "delete", "reader")
	s.expect("Role read deleted", root, "role", "delete", "read")
	s.expect("Authentication Disabled", root, "auth", "disable")
	s.expect("a/1 | x", "get", "a/1")
}
