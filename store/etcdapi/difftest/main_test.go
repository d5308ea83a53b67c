package difftest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"
)

// suite is set by TestMain.
var suite *Suite

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	flag.Parse()
	if err := moreCases(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "difftest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bins, err := FindBinaries(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	suite = NewSuite(bins)
	code := m.Run()
	if code == 0 && wholeRun() && !bins.Self {
		for _, step := range suite.UnusedDeviations() {
			fmt.Fprintf(os.Stderr, "deviations.go lists %q, but no such step differs\n", step)
			code = 1
		}
	}
	return code
}

// moreCases lets four cases run at a time, as they mostly wait, unless the
// command line says how many.
func moreCases() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", "4")
}

// wholeRun reports whether no flag selected a part of the tests.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// call is a Step whose Op is a unary call.
func call(name string, req proto.Message, opts ...CallOption) Step {
	return Step{name, Call(req, opts...)}
}
