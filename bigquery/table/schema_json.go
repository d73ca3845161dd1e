package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// JSONError says where a schema file is wrong.
type JSONError struct {
	Line, Column int64 // 1-based; the column counts bytes
	Offset       int64 // bytes from the start
	Path         string
	Msg          string
	Err          error // the cause, nil where there is none
}

func (e *JSONError) Error() string {
	s := fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	if e.Path != "" {
		s += e.Path + ": "
	}
	return s + e.Msg
}

func (e *JSONError) Unwrap() error { return e.Err }

// ParseSchemaJSON reads a schema as the bq command and the REST API write it: an array of fields, or an object with the one
// attribute "fields". Attributes it does not know are refused, so that a misspelt "mode" does not become NULLABLE. The
// first fault of the text is a *JSONError; the faults of a schema that could be read are those of Validate, each wrapped in the
// *JSONError of the field it is about.
func ParseSchemaJSON(data []byte) (*Schema, error) {
	p := &schemaParser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), starts: map[string]int64{}}
	p.dec.UseNumber()
	fields, err := p.document()
	if err != nil {
		return nil, err
	}
	s := &Schema{Fields: fields}
	if err := s.Validate(); err != nil {
		return nil, p.placed(err)
	}
	return s, nil
}

type schemaParser struct {
	data []byte
	dec  *json.Decoder
	at   int64 // where the token read last begins
	// starts are where fields begin, by their paths in names as Fault has them. Of two of one path it is the second, which is
	// the one that is wrong.
	starts map[string]int64
}

// placed says of the faults of Validate where in the text they are.
func (p *schemaParser) placed(err error) error {
	var fault *Fault
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, p.placed(e))
		}
		return errors.Join(out...)
	}
	if !errors.As(err, &fault) {
		return err
	}
	start, ok := p.starts[fault.Path]
	if !ok {
		return err // of the table as a whole, or of members that stand before their STRUCT's name
	}
	p.at = start
	return p.fault("", fault.Error(), fault)
}

// maxSchemaNesting bounds recursion; Validate refuses far less.
const maxSchemaNesting = 64

func (p *schemaParser) document() ([]Field, error) {
	t, err := p.next("")
	if err != nil {
		return nil, err
	}
	var fields []Field
	switch t {
	case json.Delim('['):
		fields, err = p.fields("", "", 0)
	case json.Delim('{'):
		fields, err = p.wrapped()
	default:
		return nil, p.errorf("", "expected an array of fields, or an object with \"fields\"")
	}
	if err != nil {
		return nil, err
	}
	if _, err := p.next(""); !errors.Is(err, io.EOF) {
		return nil, p.errorf("", "expected the end of the schema")
	}
	return fields, nil
}

func (p *schemaParser) wrapped() (fields []Field, err error) {
	err = p.object("", func(key, path string) error {
		if key != "fields" {
			return p.errorf(path, "unknown attribute %q: expected \"fields\"", key)
		}
		fields, err = p.array(path, "", 0)
		return err
	})
	return fields, err
}

// array reads an array of fields, its bracket included.
func (p *schemaParser) array(path, parent string, depth int) ([]Field, error) {
	if depth > maxSchemaNesting {
		return nil, p.errorf(path, "fields lie %d levels deep: expected at most %d", depth, MaxDepth)
	}
	if err := p.expect(json.Delim('['), path, "an array of fields"); err != nil {
		return nil, err
	}
	return p.fields(path, parent, depth)
}

// fields reads the fields of parent, which is a path in names as path is one in the text.
func (p *schemaParser) fields(path, parent string, depth int) ([]Field, error) {
	var fields []Field
	for p.dec.More() {
		at := fmt.Sprintf("%s[%d]", path, len(fields))
		if err := p.expect(json.Delim('{'), at, "a field, which is an object"); err != nil {
			return nil, err
		}
		start := p.at
		f, err := p.field(at, parent, depth)
		if err != nil {
			return nil, err
		}
		p.starts[Join(parent, f.Name)] = start
		fields = append(fields, f)
	}
	_, err := p.next(path)
	return fields, err
}

func (p *schemaParser) field(path, parent string, depth int) (Field, error) {
	var f Field
	start := p.at
	err := p.object(path, func(key, path string) error { return p.attribute(&f, key, path, parent, depth) })
	if err != nil {
		return f, err
	}
	if f.Name == "" || f.Type == 0 {
		p.at = start
		return f, p.errorf(path, "a field needs a name and a type")
	}
	return f, nil
}

// object reads members up to the closing brace; the opening one has been read.
func (p *schemaParser) object(path string, member func(key, path string) error) error {
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.next(path)
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return p.errorf(Join(path, key), "is given twice")
		}
		seen[key] = true
		if err := member(key, Join(path, key)); err != nil {
			return err
		}
	}
	_, err := p.next(path)
	return err
}

func (p *schemaParser) attribute(f *Field, key, path, parent string, depth int) (err error) {
	switch key {
	case "name":
		f.Name, err = p.string(path)
	case "type":
		f.Type, err = parsed(p, path, ParseType)
	case "mode":
		f.Mode, err = parsed(p, path, ParseMode)
	case "fields":
		f.Fields, err = p.array(path, Join(parent, f.Name), depth+1)
	case "description":
		f.Description, err = p.string(path)
	case "defaultValueExpression":
		f.Default, err = p.string(path)
	case "collation":
		f.Collation, err = p.string(path)
	case "roundingMode":
		f.RoundingMode, err = p.string(path)
	case "maxLength":
		f.MaxLength, err = p.int(path)
	case "precision":
		f.Precision, err = p.int(path)
	case "scale":
		f.Scale, err = p.int(path)
	case "timestampPrecision":
		f.TimestampPrecision, err = p.int(path)
	case "rangeElementType":
		f.Range, err = p.rangeElement(path)
	case "policyTags":
		f.PolicyTags, err = p.policyTags(path)
	default:
		err = p.errorf(path, "unknown attribute %q: expected one of %s", key, strings.Join(attributeNames, ", "))
	}
	return err
}

var attributeNames = []string{"name", "type", "mode", "fields", "description", "defaultValueExpression", "collation",
	"roundingMode", "maxLength", "precision", "scale", "timestampPrecision", "rangeElementType", "policyTags"}

func parsed[T any](p *schemaParser, path string, parse func(string) (T, error)) (T, error) {
	s, err := p.string(path)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := parse(s)
	if err != nil {
		return v, p.errorf(path, "%v", err)
	}
	return v, nil
}

// rangeElement reads {"type": "DATE"}, and "DATE" too, which bq's own schema files hold.
func (p *schemaParser) rangeElement(path string) (typ Type, err error) {
	t, err := p.next(path)
	if err != nil {
		return 0, err
	}
	if s, ok := t.(string); ok {
		if typ, err = ParseType(s); err != nil {
			return 0, p.errorf(path, "%v", err)
		}
		return typ, nil
	}
	if t != json.Delim('{') {
		return 0, p.errorf(path, "expected an object with \"type\"")
	}
	err = p.object(path, func(key, path string) error {
		if key != "type" {
			return p.errorf(path, "unknown attribute %q: expected \"type\"", key)
		}
		typ, err = parsed(p, path, ParseType)
		return err
	})
	return typ, err
}

func (p *schemaParser) policyTags(path string) (names []string, err error) {
	if err := p.expect(json.Delim('{'), path, "an object with \"names\""); err != nil {
		return nil, err
	}
	err = p.object(path, func(key, path string) error {
		if key != "names" {
			return p.errorf(path, "unknown attribute %q: expected \"names\"", key)
		}
		names, err = p.strings(path)
		return err
	})
	return names, err
}

func (p *schemaParser) strings(path string) ([]string, error) {
	if err := p.expect(json.Delim('['), path, "an array of strings"); err != nil {
		return nil, err
	}
	var out []string
	for p.dec.More() {
		s, err := p.string(fmt.Sprintf("%s[%d]", path, len(out)))
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	_, err := p.next(path)
	return out, err
}

func (p *schemaParser) string(path string) (string, error) {
	t, err := p.next(path)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", p.errorf(path, "expected a string")
	}
	return s, nil
}

// int reads a whole number, quoted or not: the REST API quotes its int64 values, people do not.
func (p *schemaParser) int(path string) (int64, error) {
	t, err := p.next(path)
	if err != nil {
		return 0, err
	}
	text, _ := t.(string)
	if n, ok := t.(json.Number); ok {
		text = n.String()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, p.errorf(path, "expected a whole number")
	}
	return n, nil
}

func (p *schemaParser) expect(want json.Delim, path, what string) error {
	t, err := p.next(path)
	if err != nil {
		return err
	}
	if t != want {
		return p.errorf(path, "expected %s", what)
	}
	return nil
}

func (p *schemaParser) next(path string) (json.Token, error) {
	p.at = p.dec.InputOffset()
	for p.at < int64(len(p.data)) && strings.IndexByte(" \t\r\n,:", p.data[p.at]) >= 0 {
		p.at++
	}
	t, err := p.dec.Token()
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF) && p.at >= int64(len(p.data)) && path == "":
		return nil, p.fault(path, "the schema is empty or ends too early", err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		p.at = int64(len(p.data))
		return nil, p.fault(path, "the schema ends too early", err)
	}
	return nil, p.fault(path, "not valid JSON: "+err.Error(), err)
}

func (p *schemaParser) errorf(path, format string, args ...any) error {
	return p.fault(path, fmt.Sprintf(format, args...), nil)
}

func (p *schemaParser) fault(path, msg string, cause error) error {
	before := p.data[:min(p.at, int64(len(p.data)))]
	return &JSONError{
		Line:   int64(bytes.Count(before, []byte{'\n'})) + 1,
		Column: int64(len(before) - bytes.LastIndexByte(before, '\n')),
		Offset: p.at,
		Path:   path,
		Msg:    msg,
		Err:    cause,
	}
}
