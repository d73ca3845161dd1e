package avro

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// SchemaError says where a schema is wrong and why.
type SchemaError struct {
	Path string // of the field, dotted; "" is the schema itself
	Msg  string
}

func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "Avro schema: " + e.Msg
	}
	return "Avro schema: field " + e.Path + ": " + e.Msg
}

func wrong(path, format string, args ...any) error {
	return &SchemaError{path, fmt.Sprintf(format, args...)}
}

// maxNesting is how deeply types may be written inside one another. Tables end at 15 STRUCTs, each of which may lie in an array
// and a union.
const maxNesting = 200

// Names are the named types that are known so far, by full name.
type Names map[string]*Schema

// Parse reads a schema that stands alone. An error is a *SchemaError.
func Parse(text string) (*Schema, error) { return Names{}.Parse(text) }

// Parse reads a schema that may refer to types parsed before, and adds its own. After an error the Names are of no more use.
func (n Names) Parse(text string) (*Schema, error) {
	if !utf8.ValidString(text) {
		return nil, wrong("", "the text is not valid UTF-8")
	}
	if !json.Valid([]byte(text)) {
		var any json.RawMessage
		return nil, wrong("", "the text is no JSON: %v", json.Unmarshal([]byte(text), &any))
	}
	p := parser{names: n}
	return p.parse(json.RawMessage(text), place{})
}

type parser struct{ names Names }

// place is where in a schema the parser is.
type place struct {
	path  string
	space string // the enclosing namespace
	depth int
}

func (at place) in(name string) place {
	at.path = join(at.path, name)
	return at
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (p *parser) parse(text json.RawMessage, at place) (*Schema, error) {
	if at.depth++; at.depth > maxNesting {
		return nil, wrong(at.path, "types nest more than %d levels deep", maxNesting)
	}
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return nil, wrong(at.path, "no type is named here")
	}
	switch text[0] {
	case '"':
		return p.named(text, at)
	case '[':
		return p.union(text, at)
	case '{':
		return p.object(text, at)
	}
	return nil, wrong(at.path, "expected a name, an object or a list of types")
}

// named reads a type that is only a name: a primitive, or a type defined before.
func (p *parser) named(text json.RawMessage, at place) (*Schema, error) {
	name := textOf(text)
	if k := primitive(name); k != 0 {
		return &Schema{Kind: k}, nil
	}
	if s := p.find(name, at.space); s != nil {
		return s, nil
	}
	return nil, wrong(at.path, "the type %q is not known: expected a primitive, or a type defined before", name)
}

func (p *parser) find(name, space string) *Schema {
	if !strings.Contains(name, ".") && space != "" {
		if s := p.names[space+"."+name]; s != nil {
			return s
		}
	}
	return p.names[name]
}

func primitive(name string) Kind {
	for k := Null; k <= String; k++ {
		if kindNames[k] == name {
			return k
		}
	}
	return 0
}

func (p *parser) union(text json.RawMessage, at place) (*Schema, error) {
	var branches []json.RawMessage
	if err := json.Unmarshal(text, &branches); err != nil {
		return nil, wrong(at.path, "%v", err)
	}
	s := &Schema{Kind: Union}
	for _, b := range branches {
		branch, err := p.parse(b, at)
		if err != nil {
			return nil, err
		}
		if branch.Kind == Union {
			return nil, wrong(at.path, "a union directly inside a union")
		}
		if slices.ContainsFunc(s.Branches, func(o *Schema) bool { return o.Kind == branch.Kind && o.Name == branch.Name }) {
			return nil, wrong(at.path, "a union has %s twice", describe(branch))
		}
		s.Branches = append(s.Branches, branch)
	}
	if len(s.Branches) == 0 {
		return nil, wrong(at.path, "a union without types")
	}
	return s, nil
}

// describe names a type in an error.
func describe(s *Schema) string {
	if s.Name != "" {
		return s.Name
	}
	return s.Kind.String()
}

// object is a JSON object of a schema; keys are case-sensitive.
type object map[string]json.RawMessage

func (o object) text(key string) string { return textOf(o[key]) }

// textOf is a JSON string, or "" where raw is none.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// number is a whole number, or nil where it is none: a decimal with such a precision is no decimal.
func (o object) number(key string) *int64 {
	var n *int64
	if json.Unmarshal(o[key], &n) != nil {
		return nil
	}
	return n
}

func (p *parser) object(text json.RawMessage, at place) (*Schema, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, wrong(at.path, "%v", err)
	}
	name := o.text("type")
	if name == "" {
		return p.parse(o["type"], at) // {"type": {…}}: a type in a wrapper
	}
	switch name {
	case "record", "error":
		return p.record(o, at)
	case "enum":
		return p.enum(o, at)
	case "fixed":
		return p.fixed(o, at)
	case "array":
		items, err := p.parse(o["items"], at)
		return &Schema{Kind: Array, Items: items}, err
	case "map":
		values, err := p.parse(o["values"], at)
		return &Schema{Kind: Map, Values: values}, err
	}
	k := primitive(name)
	if k == 0 {
		return p.named(o["type"], at)
	}
	return o.annotate(&Schema{Kind: k}), nil
}

func (o object) annotate(s *Schema) *Schema {
	s.Logical, s.SQLType = o.text("logicalType"), o.text("sqlType")
	s.Precision, s.Scale = o.number("precision"), o.number("scale")
	return s
}

// define makes a named type known, before what lies in it is read. space is the namespace of what lies in it.
func (p *parser) define(s *Schema, o object, at place) (space string, err error) {
	name := o.text("name")
	full := name
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		space = name[:dot]
	} else {
		space = at.space
		if _, own := o["namespace"]; own {
			space = o.text("namespace")
		}
		if space != "" {
			full = space + "." + name
		}
	}
	for part := range strings.SplitSeq(full, ".") {
		if !validName(part) {
			return "", wrong(at.path, "a %s is called %q: expected letters, digits and underscores, no digit first", s.Kind, full)
		}
	}
	if p.names[full] != nil {
		return "", wrong(at.path, "the type %q is defined twice", full)
	}
	if primitive(full) != 0 {
		return "", wrong(at.path, "a %s is called like the primitive %q", s.Kind, full)
	}
	s.Name = full
	for _, a := range o.texts("aliases") {
		if !strings.Contains(a, ".") && space != "" {
			a = space + "." + a
		}
		s.Aliases = append(s.Aliases, a)
	}
	p.names[full] = s
	return space, nil
}

func (o object) texts(key string) (all []string) {
	if json.Unmarshal(o[key], &all) != nil {
		return nil
	}
	return all
}

// validName says whether a name is what the specification allows.
func validName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

func (p *parser) record(o object, at place) (*Schema, error) {
	s := o.annotate(&Schema{Kind: Record})
	space, err := p.define(s, o, at)
	if err != nil {
		return nil, err
	}
	var fields []object
	if err := json.Unmarshal(o["fields"], &fields); err != nil || o["fields"] == nil {
		return nil, wrong(at.path, "the record %q has no list of fields", s.Name)
	}
	at.space = space
	seen := make(map[string]bool, len(fields))
	for _, fo := range fields {
		f := Field{Name: fo.text("name"), Aliases: fo.texts("aliases"), Default: fo["default"], DisplayName: fo.text("displayName")}
		if !validName(f.Name) {
			return nil, wrong(at.path, "a field is called %q: expected letters, digits and underscores, no digit first", f.Name)
		}
		if seen[f.Name] {
			return nil, wrong(at.path, "the record %q has the field %q twice", s.Name, f.Name)
		}
		seen[f.Name] = true
		if f.Type, err = p.parse(fo["type"], at.in(f.Name)); err != nil {
			return nil, err
		}
		s.Fields = append(s.Fields, f)
	}
	return s, nil
}

func (p *parser) enum(o object, at place) (*Schema, error) {
	s := &Schema{Kind: Enum, Symbols: o.texts("symbols"), Default: o.text("default")}
	if _, err := p.define(s, o, at); err != nil {
		return nil, err
	}
	if len(s.Symbols) == 0 {
		return nil, wrong(at.path, "the enum %q has no symbols", s.Name)
	}
	for i, symbol := range s.Symbols {
		if !validName(symbol) || slices.Contains(s.Symbols[:i], symbol) {
			return nil, wrong(at.path, "the enum %q has the symbol %q: expected letters, digits and underscores, and each once", s.Name, symbol)
		}
	}
	if s.Default != "" && !slices.Contains(s.Symbols, s.Default) {
		return nil, wrong(at.path, "the enum %q has the default %q, which is none of its symbols", s.Name, s.Default)
	}
	return s, nil
}

// maxFixed is the size of the largest fixed type that is taken: what a row may have is far less.
const maxFixed = 1 << 30

func (p *parser) fixed(o object, at place) (*Schema, error) {
	s := o.annotate(&Schema{Kind: Fixed})
	if _, err := p.define(s, o, at); err != nil {
		return nil, err
	}
	size := o.number("size")
	if size == nil || *size < 0 || *size > maxFixed {
		return nil, wrong(at.path, "the fixed type %q needs a size from 0 to %d", s.Name, maxFixed)
	}
	s.Size = int(*size)
	return s, nil
}
