// Generate writes the Go code for the proto files of a directory. It needs no
// protoc: files are compiled here, against the descriptors that are linked in,
// and go.mod has the generators.
package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	_ "go.etcd.io/etcd/api/v3/etcdserverpb" // rpc.proto and all that it imports
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return err
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	req, err := compile(dir, names)
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(plugin, req, dir); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// compile makes what protoc gives to its plugins.
func compile(dir string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	linked := protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
		d, err := protoregistry.GlobalFiles.FindFileByPath(name)
		return protocompile.SearchResult{Desc: d}, err
	})
	compiler := protocompile.Compiler{
		Resolver:       protocompile.CompositeResolver{&protocompile.SourceResolver{ImportPaths: []string{dir}}, linked},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("paths=source_relative")}
	seen := map[string]bool{}
	for _, f := range files {
		req.ProtoFile = appendFile(req.ProtoFile, f, seen)
	}
	return req, nil
}

// appendFile appends a file after the files that it imports.
func appendFile(to []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return to
	}
	seen[f.Path()] = true
	d := proto.CloneOf(protoutil.ProtoFromFileDescriptor(f))
	for i := range f.Imports().Len() {
		imported := f.Imports().Get(i).FileDescriptor
		if imported.IsPlaceholder() {
			// etcd's files import each other by paths that they are not registered with.
			if r, err := protoregistry.GlobalFiles.FindFileByPath(path.Base(imported.Path())); err == nil {
				imported = r
			}
		}
		d.Dependency[i] = imported.Path()
		to = appendFile(to, imported, seen)
	}
	return append(to, d)
}

// run has a plugin generate code and writes it to dir.
func run(plugin string, req *pluginpb.CodeGeneratorRequest, dir string) error {
	in, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return err
	}
	if resp.Error != nil {
		return fmt.Errorf("%s", *resp.Error)
	}
	for _, f := range resp.File {
		text, err := ownRegistries([]byte(f.GetContent()))
		if err == nil {
			text, err = format.Source(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.GetName(), err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.GetName()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ownRegistries has descriptors and types registered in the package's Files and
// Types instead of the registries of the process. The generator has no option
// for it.
func ownRegistries(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte("protoimpl.TypeBuilder{")) {
		return text, nil // services register nothing
	}
	for _, add := range []struct{ after, line string }{
		{"File: protoimpl.DescBuilder{\n", "\t\t\tFileRegistry:  Files,\n"},
		{"out := protoimpl.TypeBuilder{\n", "\t\tTypeRegistry:      Types,\n"},
	} {
		if n := bytes.Count(text, []byte(add.after)); n != 1 {
			return nil, fmt.Errorf("the generated code has %q %d times, not once: adapt ownRegistries to the new generator", add.after, n)
		}
		text = bytes.Replace(text, []byte(add.after), []byte(add.after+add.line), 1)
	}
	return text, nil
}
