package main

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the source tree. They are a test so that breaking one is a
// decision and not an accident.

const (
	modulePath = "github.com/tarn-kv/tarn"
	repoRoot   = "../.."

	maxFileLines = 500
	// designLines is how much code a package can have without a DESIGN.md.
	designLines = 500
)

// mayImport lists, for each part of the tree, which other parts it may import:
// the arrows go one way, from the binary over the faces to the store, and from
// there to the log and the tree. A package without an entry has the one of the
// nearest directory above, and can always import what is below that directory.
var mayImport = map[string][]string{
	"cmd":              {"store", "store/etcdapi", "store/migrate", "store/protofield", "store/vfs", "zfs", "zfs/eviction", "systemd"},
	"store/etcdapi":    {"store", "store/auth", "store/vfs"},
	"store/migrate":    {"store", "store/wal", "store/tree", "store/vfs"},
	"zfs":              {},
	"zfs/eviction":     {"zfs"},
	"systemd":          {},
	"store":            {"store/auth", "store/wal", "store/tree", "store/vfs"},
	"store/auth":       {"store/protofield"},
	"store/protofield": {},
	"store/wal":        {"store/vfs"},
	"store/tree":       {"store/protofield", "store/vfs"},
	"store/vfs":        {},
}

// onlyIn lists which parts of the tree may use a package from elsewhere.
var onlyIn = map[string][]string{
	"google.golang.org/grpc":            {"cmd", "store/etcdapi", "store/migrate"},
	"go.etcd.io/bbolt":                  {"store/tree", "store/migrate"},
	"github.com/golang-jwt":             {"store/etcdapi"},
	"golang.org/x/crypto":               {"store/etcdapi"},
	"github.com/prometheus":             {"store/etcdapi"},
	"github.com/spf13":                  {"cmd"},
	"go.yaml.in/yaml":                   {"cmd", "zfs/eviction/nodeconf"},
	"github.com/coreos/go-systemd":      {"systemd"},
	"github.com/mistifyio/go-zfs":       {"zfs"},
	"go.etcd.io/etcd/api/v3/authpb":     {"store/etcdapi", "store/migrate"},
	"go.etcd.io/etcd/api/v3/membership": {"store/etcdapi", "store/migrate"},
}

// sourceFile is one Go file of this module.
type sourceFile struct {
	dir     string // of the package, from the root
	name    string
	test    bool
	made    bool // generated
	lines   int
	imports []string
}

// under tells whether the slash-separated path p is dir or below it.
func under(dir, p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// walkRepo calls visit with each file that can be part of the repository.
// nested tells that it belongs to a module of its own.
func walkRepo(t *testing.T, visit func(name string, nested bool)) {
	t.Helper()
	skip := []string{".git", "bin", "dist", defaultDataDir}
	var modules []string
	err := filepath.WalkDir(repoRoot, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(p, repoRoot+string(filepath.Separator)))
		if d.IsDir() {
			if slices.Contains(skip, name) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != repoRoot {
				modules = append(modules, name)
			}
			return nil
		}
		if d.Type().IsRegular() && !slices.Contains(skip, name) { // .git is a file in a work tree of git
			visit(name, slices.ContainsFunc(modules, func(m string) bool { return under(m, name) }))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// generated matches Go's mark of files that nobody writes.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func sourceFiles(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	walkRepo(t, func(name string, nested bool) {
		if nested || path.Ext(name) != ".go" {
			return
		}
		text, err := os.ReadFile(filepath.Join(repoRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		f := sourceFile{
			dir: path.Dir(name), name: name, lines: bytes.Count(text, []byte("\n")),
			test: strings.HasSuffix(name, "_test.go"), made: generated.Match(text),
		}
		for _, spec := range parsed.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			f.imports = append(f.imports, p)
		}
		files = append(files, f)
	})
	if len(files) == 0 {
		t.Fatal("no source files are found")
	}
	return files
}

// rule finds the entry of mayImport for a package directory.
func rule(dir string) (owner string, ok bool) {
	for owner = dir; owner != "."; owner = path.Dir(owner) {
		if _, ok := mayImport[owner]; ok {
			return owner, true
		}
	}
	return "", false
}

// arrowError tells what is wrong with dir importing the package imported.
func arrowError(dir, imported string) error {
	if to, ok := strings.CutPrefix(imported, modulePath+"/"); ok {
		owner, ok := rule(dir)
		if !ok {
			return fmt.Errorf("%s has no place in the layout: add it to mayImport", dir)
		}
		// What belongs to another entry is not "below" this one: the store must
		// not import its face.
		if target, _ := rule(to); target == owner || slices.Contains(mayImport[owner], target) {
			return nil
		}
		return fmt.Errorf("%s must not import %s", dir, to)
	}
	for prefix, allowed := range onlyIn {
		if under(prefix, imported) && !slices.ContainsFunc(allowed, func(a string) bool { return under(a, dir) }) {
			return fmt.Errorf("%s must not import %s: that is for %s", dir, imported, strings.Join(allowed, ", "))
		}
	}
	return nil
}

func TestImportArrows(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if f.test {
			continue // a test may look at its package from any side
		}
		for _, imported := range f.imports {
			if err := arrowError(f.dir, imported); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}

func TestArrowRules(t *testing.T) {
	allowed := [][2]string{
		{"cmd/tarn", "/store/etcdapi"}, {"store/etcdapi", "/store"}, {"store", "/store/wal"}, {"store/vfs/simfs", "/store/vfs"},
		{"zfs/eviction", "/zfs"}, {"zfs/eviction/nodeconf", "/zfs/eviction"},
	}
	forbidden := [][2]string{
		{"store", "/store/etcdapi"}, {"store", "/zfs"}, {"store", "/systemd"}, {"store/wal", "/store"}, {"store/wal", "/store/tree"},
		{"zfs", "/store"}, {"zfs", "/zfs/eviction"}, {"zfs/eviction", "/store"}, {"store/etcdapi", "/cmd/tarn"}, {"newfolder", "/store"}, {"store/etcdapi", "/store/wal"},
	}
	for _, a := range allowed {
		if err := arrowError(a[0], modulePath+a[1]); err != nil {
			t.Error(err)
		}
	}
	for _, f := range forbidden {
		if arrowError(f[0], modulePath+f[1]) == nil {
			t.Errorf("%s may import %s", f[0], f[1])
		}
	}
	if arrowError("store", "google.golang.org/grpc/codes") == nil {
		t.Error("the store may import gRPC")
	}
}

func TestFileSizes(t *testing.T) {
	for _, f := range sourceFiles(t) {
		if !f.test && !f.made && f.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: one concept per file", f.name, f.lines, maxFileLines)
		}
	}
}

func TestDesignDocuments(t *testing.T) {
	lines := map[string]int{}
	for _, f := range sourceFiles(t) {
		if !f.test {
			lines[f.dir] += f.lines
		}
	}
	for dir, n := range lines {
		if n < designLines {
			continue
		}
		if !hasDesign(dir) {
			t.Errorf("%s has %d lines and no DESIGN.md", dir, n)
		}
	}
}

// hasDesign tells whether a package, or the part of the tree that it belongs
// to, has a DESIGN.md.
func hasDesign(dir string) bool {
	owner, _ := rule(dir)
	for _, d := range []string{dir, owner} {
		if _, err := os.Stat(filepath.Join(repoRoot, d, "DESIGN.md")); err == nil {
			return true
		}
	}
	return false
}

var backticked = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestDependencies compares what is imported with docs/dependencies.md.
func TestDependencies(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(repoRoot, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range backticked.FindAllSubmatch(doc, -1) {
		used[string(m[1])] = false
	}
	for _, f := range sourceFiles(t) {
		for _, imported := range f.imports {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || under(modulePath, imported) {
				continue
			}
			known := false
			for module := range used {
				if under(module, imported) {
					used[module], known = true, true
				}
			}
			if !known {
				t.Errorf("%s imports %s, and docs/dependencies.md does not say what for", f.name, imported)
			}
		}
	}
	for module, ok := range used {
		if !ok {
			t.Errorf("docs/dependencies.md lists %s, which nothing imports", module)
		}
	}
}

// TestNoMachinePaths finds traces of somebody's machine in the sources.
func TestNoMachinePaths(t *testing.T) {
	var traces []string
	for _, dir := range []string{"home", "root", "Users", "work"} {
		traces = append(traces, "/"+dir+"/")
	}
	walkRepo(t, func(name string, _ bool) {
		text, err := os.ReadFile(filepath.Join(repoRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, trace := range traces {
			if bytes.Contains(text, []byte(trace)) && !bytes.ContainsRune(text, 0) {
				t.Errorf("%s names %s, which is a place on one machine", name, trace)
			}
		}
	})
}
