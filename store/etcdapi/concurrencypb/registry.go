package concurrencypb

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Files has the descriptors of this package, and finds all others of the process.
var Files = &files{}

// Types has the message types of this package, and only these.
var Types = new(protoregistry.Types)

// files keeps descriptors out of the process's own registry: a program that
// holds etcd's server too has files and messages of the same names, and two of
// a name end it at its start. They are registered while the package is
// initialized and only read afterwards.
type files struct{ own protoregistry.Files }

// RegisterFile adds a file of this package.
func (f *files) RegisterFile(d protoreflect.FileDescriptor) error { return f.own.RegisterFile(d) }

// FindFileByPath returns protoregistry.NotFound if there is no such file.
func (f *files) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if d, err := f.own.FindFileByPath(path); err == nil {
		return d, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

// FindDescriptorByName returns protoregistry.NotFound if there is nothing of
// that name.
func (f *files) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := f.own.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}
