package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Template is a Resolver that fills in a pattern such as "my-project.github.{event}". Braces in the dataset and table
// parts name fields of the record; field returns their values. A literal brace cannot be part of a name, so there is no
// way to write one.
//
// The pattern is checked here: a fault is a *PatternError with its column. A record whose field has no value, or one
// that cannot be part of a name, is unroutable; so is one for which field fails. field is called from all lanes.
func Template[T any](pattern string, field func(rec T, name string) (string, error)) (Resolver[T], error) {
	if field == nil {
		return nil, errors.New("template needs a function that reads fields")
	}
	return AppendTemplate(pattern, func(buf []byte, rec T, name string) ([]byte, error) {
		value, err := field(rec, name)
		return append(buf, value...), err
	})
}

// AppendTemplate is Template with a function that appends the value to buf, as append does, and so need not make a
// string for each record.
func AppendTemplate[T any](pattern string, field func(buf []byte, rec T, name string) ([]byte, error)) (Resolver[T], error) {
	if field == nil {
		return nil, errors.New("template needs a function that reads fields")
	}
	p, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	return &template[T]{pattern: p, field: field}, nil
}

// template is shared by lanes and remembers nothing; see laneTemplate.
type template[T any] struct {
	*pattern
	field func(buf []byte, rec T, name string) ([]byte, error)
}

func (t *template[T]) lane() Resolver[T] {
	return &laneTemplate[T]{template: t, known: map[string]table.Destination{}}
}

func (t *template[T]) Resolve(_ context.Context, r *stream.Record[T]) (table.Destination, error) {
	var v values
	if err := t.fill(&v, r.Value); err != nil {
		return table.Destination{}, err
	}
	return t.destination(&v)
}

// fill reads the values of all placeholders, in order. It does not check them.
func (t *template[T]) fill(v *values, rec T) (err error) {
	v.buf, v.ends = v.buf[:0], v.ends[:0]
	for _, p := range t.parts {
		if p.field == "" {
			continue
		}
		if v.buf, err = t.field(v.buf, rec, p.field); err != nil {
			v.buf = nil
			var u *Unroutable
			if errors.As(err, &u) {
				return err
			}
			return &Unroutable{Field: p.field, Reason: "cannot be read: " + err.Error(), Err: err}
		}
		v.ends = append(v.ends, len(v.buf))
		v.buf = append(v.buf, 0)
	}
	return nil
}

// values are those of a pattern's placeholders, each with a zero byte behind it. No name holds a zero byte, so different
// names differ in buf too.
type values struct {
	buf  []byte
	ends []int
}

func (v *values) at(i int) string {
	start := 0
	if i > 0 {
		start = v.ends[i-1] + 1
	}
	return string(v.buf[start:v.ends[i]])
}

// laneTemplate makes each destination once.
type laneTemplate[T any] struct {
	*template[T]
	known map[string]table.Destination
	v     values
}

// maxKnown bounds what a lane remembers; a stream with more tables than that makes their names anew now and then.
const maxKnown = 1 << 16

func (t *laneTemplate[T]) Resolve(_ context.Context, r *stream.Record[T]) (table.Destination, error) {
	if err := t.fill(&t.v, r.Value); err != nil {
		return table.Destination{}, err
	}
	if dst, ok := t.known[string(t.v.buf)]; ok {
		return dst, nil
	}
	dst, err := t.destination(&t.v)
	if err != nil {
		return dst, err
	}
	if len(t.known) == maxKnown {
		clear(t.known)
	}
	t.known[string(t.v.buf)] = dst
	return dst, nil
}

// PatternError is a fault of a table pattern.
type PatternError struct {
	Pattern string
	Column  int // where in the pattern, in characters from 1
	Msg     string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("table pattern %q, column %d: %s", e.Pattern, e.Column, e.Msg)
}

// pattern is a parsed table pattern.
type pattern struct{ parts []part }

// part is a piece of literal text, a placeholder, or the dot between two parts of the name.
type part struct {
	name  section
	text  string
	field string
}

// section is which part of the table's name a piece belongs to.
type section uint8

const (
	inProject section = iota
	inDataset
	inTable
)

func (s section) String() string { return [...]string{"project", "dataset", "table"}[s] }

// check refuses values that cannot be part of a name. A "$" would address a partition that nobody meant.
func (p part) check(value string) error {
	u := &Unroutable{Field: p.field, Value: value}
	if value == "" {
		u.Reason = "is empty: expected part of a " + p.name.String() + " name"
		return u
	}
	probe := table.Destination{Project: "p", Dataset: "d", Table: value}
	if p.name == inDataset {
		probe = table.Destination{Project: "p", Dataset: value, Table: "t"}
	}
	switch err := probe.Validate(); {
	case strings.ContainsRune(value, '$'):
		u.Reason = "cannot be part of a table name: it has the character '$'"
	case err != nil:
		// Only what is wrong with this part, without the names around it.
		u.Reason = "cannot be part of a " + p.name.String() + " name: it " + innermost(err).Error()
	default:
		return nil
	}
	return u
}

// innermost is the first cause that wraps nothing, leaving sentinels aside.
func innermost(err error) error {
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		return innermost(w.Unwrap())
	case interface{ Unwrap() []error }:
		errs := w.Unwrap()
		return innermost(errs[len(errs)-1])
	}
	return err
}

// destination checks values and puts them into the pattern.
func (p *pattern) destination(v *values) (table.Destination, error) {
	var names [3]strings.Builder
	var fields []string
	for _, part := range p.parts {
		text := part.text
		if part.field != "" {
			text = v.at(len(fields))
			fields = append(fields, part.field)
			if err := part.check(text); err != nil {
				return table.Destination{}, err
			}
		}
		names[part.name].WriteString(text)
	}
	dst := table.Destination{Project: names[inProject].String(), Dataset: names[inDataset].String(), Table: names[inTable].String()}
	if err := dst.Validate(); err != nil {
		// Each value is fit by itself, but not all of them together: too long, say.
		return table.Destination{}, &Unroutable{Field: strings.Join(fields, ", "), Reason: err.Error(), Err: err}
	}
	return dst, nil
}

func parsePattern(text string) (*pattern, error) {
	s := patternScanner{text: text}
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	return &pattern{parts}, nil
}

// patternScanner reads a pattern. at is a byte index; columns are counted in characters.
type patternScanner struct {
	text string
	at   int
	name section
	out  []part
}

func (s *patternScanner) fault(at int, format string, args ...any) error {
	return &PatternError{s.text, utf8.RuneCountInString(s.text[:at]) + 1, fmt.Sprintf(format, args...)}
}

func (s *patternScanner) parts() ([]part, error) {
	dots := s.dots()
	if len(dots) < 2 {
		return nil, s.fault(len(s.text), "expected project.dataset.table")
	}
	// A project may hold dots of its own ("example.com:project"); dataset and table hold none.
	ends := [3]int{dots[len(dots)-2], dots[len(dots)-1], len(s.text)}
	for s.name = inProject; s.name <= inTable; s.name++ {
		if err := s.section(ends[s.name]); err != nil {
			return nil, err
		}
		s.at = ends[s.name] + 1
	}
	return s.out, nil
}

// dots are the positions of the dots outside braces.
func (s *patternScanner) dots() []int {
	var dots []int
	inside := false
	for i, r := range s.text {
		switch r {
		case '{':
			inside = true
		case '}':
			inside = false
		case '.':
			if !inside {
				dots = append(dots, i)
			}
		}
	}
	return dots
}

// section reads one part of the name, which ends at end.
func (s *patternScanner) section(end int) error {
	start := s.at
	for s.at < end {
		var err error
		if s.text[s.at] == '{' {
			err = s.placeholder(end)
		} else {
			err = s.literal(end)
		}
		if err != nil {
			return err
		}
	}
	if s.at == start {
		return s.fault(start, "the %s name is empty", s.name)
	}
	return nil
}

func (s *patternScanner) placeholder(end int) error {
	open := s.at
	if s.name == inProject {
		return s.fault(open, "a placeholder cannot stand in the project")
	}
	length := strings.IndexAny(s.text[open+1:end], "{}")
	if length < 0 || s.text[open+1+length] == '{' {
		return s.fault(open, "the brace is not closed")
	}
	field := s.text[open+1 : open+1+length]
	if strings.TrimSpace(field) != field || field == "" {
		return s.fault(open+1, "expected the name of a field between the braces")
	}
	s.out = append(s.out, part{name: s.name, field: field})
	s.at = open + length + 2
	return nil
}

func (s *patternScanner) literal(end int) error {
	start := s.at
	for i, r := range s.text[start:end] {
		if r == '{' {
			end = start + i
			break
		}
		if r == '}' {
			return s.fault(start+i, "the brace was not opened")
		}
		if !literalRune(s.name, r) {
			return s.fault(start+i, "the character %q cannot be part of a %s name", r, s.name)
		}
	}
	s.out = append(s.out, part{name: s.name, text: s.text[start:end]})
	s.at = end
	return nil
}

// literalRune asks the rules of names about one character. A "$" is left to the whole name, which may end in a
// partition.
func literalRune(in section, r rune) bool {
	probe := table.Destination{Project: "p", Dataset: "d", Table: "t"}
	switch in {
	case inProject:
		probe.Project += string(r)
	case inDataset:
		probe.Dataset += string(r)
	case inTable:
		if r == '$' {
			return true
		}
		probe.Table += string(r)
	}
	return probe.Validate() == nil
}
