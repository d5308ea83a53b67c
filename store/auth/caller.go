package auth

import "context"

// Caller is on whose behalf a request is made. The zero Caller is nobody, who
// may do nothing while access control is on.
type Caller struct {
	User string
	// Revision is that of the state by which the caller was identified; 0 only for
	// nobody.
	Revision uint64

	trusted bool
}

// Anonymous reports whether the caller is nobody.
func (c Caller) Anonymous() bool { return c.Revision == 0 && !c.trusted }

type callerKey struct{}

// WithCaller returns a context for requests on behalf of c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Trusted returns a context for requests that the server makes for itself: all is
// allowed to them.
func Trusted(ctx context.Context) context.Context {
	return WithCaller(ctx, Caller{trusted: true})
}

// CallerOf returns on whose behalf ctx is: nobody, if it was not said.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
