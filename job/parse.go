package job

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A job file is bounded, so that whatever is named can be read: enough for ten thousand paths, many times the keys there
// are, and far deeper than any key. The parser takes the square of the keys and of the depth.
const (
	maxFileBytes = 1 << 20
	maxKeys      = 2000
	maxDepth     = 100
)

// Parsed is a job file that was read without a fault.
type Parsed struct {
	File
	Name string // as it was opened; relative paths begin at its folder
	// Guessed says that the format of the files is what their names tell, since the job file does not say.
	Guessed bool

	decoder *decoder // where everything stands
}

// fault is something that is wrong with the value of key, found after the file was read.
func (p *Parsed) fault(key, format string, args ...any) error {
	d := &decoder{file: p.Name, places: p.decoder.places, fromSet: p.decoder.fromSet}
	checker{d}.fault(key, format, args...)
	return &InvalidError{d.faults}
}

// Load reads and checks the job file of that name, with the values of set ("key=value", dotted keys) in place of its
// own. An *InvalidError lists every fault.
func Load(name string, set []string) (*Parsed, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("job file %s: more than %d bytes: is it a job file?", name, maxFileBytes)
	}
	return Parse(name, text, set)
}

// Parse reads a job file's text. It reports everything that is wrong at once.
func Parse(name string, text []byte, set []string) (*Parsed, error) {
	d := &decoder{file: name, places: map[string]place{}, fromSet: map[string]bool{}}
	p := &Parsed{Name: name, decoder: d}
	if root := d.parse(text); root != nil {
		root = d.override(root, set)
		d.value(root, reflect.ValueOf(&p.File).Elem(), "")
		p.guessFormat(d)
		check(&p.File, d)
	}
	if len(d.faults) == 0 {
		return p, nil
	}
	slices.SortStableFunc(d.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return nil, &InvalidError{d.faults}
}

// parse makes the tree, nil with a fault when the text is not YAML or not one document.
func (d *decoder) parse(text []byte) ast.Node {
	if !utf8.Valid(text) {
		d.faults = append(d.faults, Fault{File: d.file, Msg: "is not valid UTF-8"})
		return nil
	}
	tokens := lexer.Tokenize(string(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	if at, msg := tooMuch(tokens); at != nil {
		d.faults = append(d.faults, Fault{File: d.file, Line: at.Line, Column: at.Column, Msg: msg})
		return nil
	}
	tree, err := parser.Parse(tokens, 0)
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at := syntax.Token.Position
		d.faults = append(d.faults, Fault{File: d.file, Line: at.Line, Column: at.Column, Msg: syntax.Message})
		return nil
	case err != nil:
		d.faults = append(d.faults, Fault{File: d.file, Msg: err.Error()})
		return nil
	}
	docs := slices.DeleteFunc(tree.Docs, func(doc *ast.DocumentNode) bool {
		_, directive := doc.Body.(*ast.DirectiveNode)
		return doc.Body == nil || directive
	})
	switch len(docs) {
	case 0:
		d.faults = append(d.faults, Fault{File: d.file, Line: 1, Column: 1, Msg: "is empty: expected job, source and sink"})
		return nil
	case 1:
		return docs[0].Body
	}
	d.fault(docs[1].Body, "", "a second document begins here: expected one job in a file")
	return nil
}

// tooMuch finds the token at which text becomes no job file.
func tooMuch(tokens token.Tokens) (at *token.Position, msg string) {
	keys, depth := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingValueType:
			keys++
		case token.MappingStartType, token.SequenceStartType, token.SequenceEntryType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if t.Type == token.SequenceEntryType && t.Prev != nil && t.Prev.Position.Line != t.Position.Line {
			depth-- // a line of a list, not a list in a list
		}
		switch {
		case keys > maxKeys:
			return t.Position, fmt.Sprintf("has more than %d keys: is it a job file?", maxKeys)
		case depth > maxDepth:
			return t.Position, fmt.Sprintf("is nested deeper than %d: is it a job file?", maxDepth)
		}
	}
	return nil, ""
}
