package protorow

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/internal/nearest"
)

// Set is the types of a descriptor set file:
//
//	protoc --include_imports --descriptor_set_out=shop.pb shop.proto
//
// Options in the file stay as they are, whatever is linked into the program.
type Set struct {
	files *protoregistry.Files
}

// ParseSet reads the contents of a descriptor set file. Every file that one of its files imports must be in it. The error is a
// *row.Error of kind C-ROOT.
func ParseSet(set []byte) (*Set, error) {
	var files descriptorpb.FileDescriptorSet
	if err := (proto.UnmarshalOptions{Resolver: nothing}).Unmarshal(set, &files); err != nil {
		return nil, noType("the bytes are no descriptor set: expected what protoc --descriptor_set_out writes")
	}
	if lacking := missingImports(&files); len(lacking) > 0 {
		return nil, noType(fmt.Sprintf("the descriptor set lacks %s: protoc writes imports with --include_imports, buf build always",
			few(lacking, "files")))
	}
	all, err := protodesc.NewFiles(&files)
	if err != nil {
		return nil, noType(fmt.Sprintf("the descriptor set cannot be used: %v", err))
	}
	return &Set{all}, nil
}

// missingImports are the files that are imported and not there, and by which each.
func missingImports(set *descriptorpb.FileDescriptorSet) (lacking []string) {
	there := map[string]bool{}
	for _, f := range set.File {
		there[f.GetName()] = true
	}
	for _, f := range set.File {
		for _, name := range f.Dependency {
			if !there[name] {
				there[name] = true
				lacking = append(lacking, fmt.Sprintf("%q (imported by %q)", name, f.GetName()))
			}
		}
	}
	return lacking
}

// few lists what is said of a few things, and of many the first.
func few(things []string, what string) string {
	const most = 5
	if len(things) <= most {
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%d %s, among them %s", len(things), what, strings.Join(things[:most], ", "))
}

// MessageOf is Set.Message of the contents of a descriptor set file.
func MessageOf(set []byte, name string) (protoreflect.MessageDescriptor, error) {
	s, err := ParseSet(set)
	if err != nil {
		return nil, err
	}
	return s.Message(name)
}

// Message finds a message by its full name, with its package. The error is a *row.Error of kind C-ROOT, and says which messages have
// names that are near.
func (s *Set) Message(name string) (protoreflect.MessageDescriptor, error) {
	d, err := s.files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, noType(fmt.Sprintf("the descriptor set has no %q: expected the full name of a message, with its package%s",
			name, meant(name, s.messages())))
	}
	md, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, noType(fmt.Sprintf("%q is no message in the descriptor set%s", name, meant(name, s.messages())))
	}
	return md, nil
}

// FieldOption finds a field option, an extension of google.protobuf.FieldOptions, by its full name: what Options.JSONOptions and
// GeographyOptions take. The error is a *row.Error of kind C-OPTTYPE.
func (s *Set) FieldOption(name string) (protoreflect.ExtensionType, error) {
	d, err := s.files.FindDescriptorByName(protoreflect.FullName(name))
	if err == nil {
		if x, ok := d.(protoreflect.ExtensionDescriptor); ok && x.IsExtension() && x.ContainingMessage().FullName() == fieldOptionsName {
			return dynamicpb.NewExtensionType(x), nil
		}
	}
	return nil, &row.Error{Kind: row.KindOptType, Offset: -1, Msg: fmt.Sprintf("the descriptor set has no field option %q%s", name, meant(name, s.options()))}
}

// meant is the end of a message about a name that is not there.
func meant(name string, known []string) string {
	slices.Sort(known)
	if n := nearest.To(name, known); n != "" {
		return "; did you mean " + n + "?"
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	alike := slices.DeleteFunc(slices.Clone(known), func(k string) bool {
		return !strings.EqualFold(k[strings.LastIndexByte(k, '.')+1:], last)
	})
	switch {
	case len(alike) > 0:
		return "; did you mean " + few(alike, "of them") + "?"
	case len(known) > 0:
		return "; it has " + few(known, "of them")
	}
	return ""
}

// messages are the names of all messages but those of maps' entries and of protobuf's own files.
func (s *Set) messages() (names []string) {
	s.files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if f.Package() != "google.protobuf" {
			names = messagesIn(f, names)
		}
		return true
	})
	return names
}

func messagesIn(s scope, names []string) []string {
	for i := range s.Messages().Len() {
		if md := s.Messages().Get(i); !md.IsMapEntry() {
			names = messagesIn(md, append(names, string(md.FullName())))
		}
	}
	return names
}

// options are the names of all field options.
func (s *Set) options() (names []string) {
	s.files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		names = optionsIn(f, names)
		return true
	})
	return names
}

func optionsIn(s scope, names []string) []string {
	for i := range s.Extensions().Len() {
		if x := s.Extensions().Get(i); x.ContainingMessage().FullName() == fieldOptionsName {
			names = append(names, string(x.FullName()))
		}
	}
	for i := range s.Messages().Len() {
		names = optionsIn(s.Messages().Get(i), names)
	}
	return names
}
