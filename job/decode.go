package job

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder reads a YAML tree into option structs. It knows no key by heart: a key is the name of a field with its first
// word in lower case, so that Go options and job files have one vocabulary. It goes on after a fault, so that one look
// shows all of them.
//
// Struct tags:
//
//	one:"a,b"      the text must be one of these
//	need:"true"    the key must be there
//	need:"one"     one of the keys so marked must be there
//	key:"name"     a key that is not the field's name
type decoder struct {
	file   string
	faults []Fault
	places map[string]place // of every key and value that was there
	// fromSet has the keys that --set gave: their places are in no file.
	fromSet map[string]bool
}

// ofSet is the line of everything that stands in a value of --set.
const ofSet = -1

// place is where something stands. quoted is 1 when it begins with a quote, so that its text begins one further.
type place struct{ line, column, quoted int }

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Bytes]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) fault(n ast.Node, key, format string, args ...any) {
	d.faultAt(placeOf(n), key, format, args...)
}

func (d *decoder) faultAt(p place, key, format string, args ...any) {
	f := Fault{d.file, p.line, p.column, key, fmt.Sprintf(format, args...)}
	if p.line == ofSet || d.fromSet[key] {
		f.File, f.Line, f.Column = setFile, 0, 0
	}
	d.faults = append(d.faults, f)
}

func placeOf(n ast.Node) place {
	if n == nil || n.GetToken() == nil {
		return place{}
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && m.Start != nil && m.Start.Value != "{" {
		return placeOf(m.Values[0].Key)
	}
	t := n.GetToken()
	at := place{line: t.Position.Line, column: t.Position.Column}
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		at.quoted = 1
	}
	return at
}

// value reads n into v, which key names.
func (d *decoder) value(n ast.Node, v reflect.Value, key string) {
	n = bare(n)
	if tag, ok := n.(*ast.TagNode); ok {
		d.places[key] = placeOf(n)
		d.fault(n, key, "has the tag %s, and job files have none: leave it out, and put text in quotes", tag.GetToken().Value)
		return
	}
	if _, null := n.(*ast.NullNode); null && v.Kind() == reflect.Pointer && needy(v.Type().Elem()) {
		return // a section that cannot do without its keys, and has none, is not there: --set takes one away like this
	}
	d.places[key] = placeOf(n)
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), key)
	case v.Type() == durationType:
		d.duration(n, v, key)
	case v.Type() == sizeType:
		d.size(n, v, key)
	case v.CanAddr() && v.Addr().Type().Implements(textType):
		d.text(n, v, key)
	case v.Kind() == reflect.Struct:
		d.object(n, v, key)
	case v.Kind() == reflect.Slice:
		d.list(n, v, key)
	case v.Kind() == reflect.Map:
		d.dictionary(n, v, key)
	default:
		d.scalar(n, v, key)
	}
}

// needy reports whether a section has keys that must be there.
func needy(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("need") != "" {
			return true
		}
	}
	return false
}

// bare looks behind anchors; aliases are refused by scalar and object as what they are not.
func bare(n ast.Node) ast.Node {
	for {
		a, ok := n.(*ast.AnchorNode)
		if !ok {
			return n
		}
		n = a.Value
	}
}

func (d *decoder) object(n ast.Node, v reflect.Value, key string) {
	pairs, ok := pairsOf(n)
	if !ok {
		if _, null := n.(*ast.NullNode); !null {
			d.wrong(n, key, "keys below it, such as "+strings.Join(first(keysOf(v.Type()), 3), ", "))
			return
		}
	}
	seen := map[string]bool{}
	known := keysOf(v.Type())
	for _, p := range pairs {
		name := keyText(p.Key)
		at := joinKey(key, name)
		i := slices.Index(known, name)
		switch {
		case i < 0:
			d.fault(p.Key, at, "unknown key%s", didYouMean(name, known))
		default:
			d.value(p.Value, v.Field(i), at)
			d.oneOf(p.Value, v.Field(i), v.Type().Field(i).Tag.Get("one"), at)
			if _, null := bare(p.Value).(*ast.NullNode); null && d.places[at] != (place{}) {
				d.places[at] = placeOf(p.Key)
			}
		}
		seen[name] = true
	}
	for i, name := range known {
		if !seen[name] && v.Type().Field(i).Tag.Get("need") == "true" {
			d.fault(n, joinKey(key, name), "this key is missing")
		}
	}
}

func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return k.String()
}

func joinKey(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// keysOf is the keys of a struct's fields, in their order.
func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		f := t.Field(i)
		if keys[i] = f.Tag.Get("key"); keys[i] == "" {
			keys[i] = keyOf(f.Name)
		}
	}
	return keys
}

// keyOf writes a Go name as a key: MaxAppendBytes is maxAppendBytes, URL is url, HTTPAddr is httpAddr.
func keyOf(name string) string {
	r := []rune(name)
	for i := range r {
		if i > 0 && i+1 < len(r) && unicode.IsLower(r[i+1]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}

func first(all []string, n int) []string { return all[:min(n, len(all))] }

func (d *decoder) list(n ast.Node, v reflect.Value, key string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrong(n, key, "a list: [a, b], or lines that begin with a hyphen")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, e := range s.Values {
		d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", key, i))
	}
}

func (d *decoder) dictionary(n ast.Node, v reflect.Value, key string) {
	pairs, ok := pairsOf(n)
	if !ok {
		d.wrong(n, key, "keys below it")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range pairs {
		e := reflect.New(v.Type().Elem()).Elem()
		name := keyText(p.Key)
		d.value(p.Value, e, joinKey(key, name))
		v.SetMapIndex(reflect.ValueOf(name), e)
	}
}

func (d *decoder) duration(n ast.Node, v reflect.Value, key string) {
	text, ok := textOf(n)
	if !ok {
		text = n.String()
	}
	dur, err := time.ParseDuration(text)
	if err != nil {
		d.fault(n, key, "%q is not a duration: expected a number with a unit, such as 500ms, 10s, 5m or 1h30m", text)
		return
	}
	if dur < 0 {
		d.fault(n, key, "%q is negative: expected a duration of 0s or more", text)
		return
	}
	v.SetInt(int64(dur))
}

func (d *decoder) size(n ast.Node, v reflect.Value, key string) {
	text, ok := textOf(n)
	if !ok {
		text = n.String()
	}
	b, err := ParseBytes(text)
	if err != nil {
		d.fault(n, key, "%v", err)
		return
	}
	v.SetInt(int64(b))
}

func (d *decoder) text(n ast.Node, v reflect.Value, key string) {
	text, ok := textOf(n)
	if !ok {
		d.wrong(n, key, "text")
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		d.fault(n, key, "%v", err)
	}
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, key string) {
	switch v.Kind() {
	case reflect.String:
		text, ok := textOf(n)
		switch {
		case !ok:
			d.wrong(n, key, "text; put it in quotes if it is meant as text")
		case !utf8.ValidString(text):
			d.fault(n, key, "is not valid UTF-8")
		default:
			v.SetString(text)
		}
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			d.wrong(n, key, "true or false")
			return
		}
		v.SetBool(b.Value)
	case reflect.Int, reflect.Int64:
		d.integer(n, v, key)
	case reflect.Float64:
		d.float(n, v, key)
	default:
		panic("job: no way to read a " + v.Type().String())
	}
}

// oneOf holds text to the words that the field's tag lists.
func (d *decoder) oneOf(n ast.Node, v reflect.Value, words, key string) {
	if words == "" || v.Kind() != reflect.String || v.Len() == 0 {
		return
	}
	if known := strings.Split(words, ","); !slices.Contains(known, v.String()) {
		d.fault(n, key, "unknown value %q%s", v.String(), didYouMean(v.String(), known))
	}
}

func (d *decoder) integer(n ast.Node, v reflect.Value, key string) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		d.wrong(n, key, "a whole number")
		return
	}
	switch x := i.Value.(type) {
	case int64:
		v.SetInt(x)
	case uint64:
		if x > math.MaxInt64 {
			d.fault(n, key, "%d is too large: expected at most %d", x, int64(math.MaxInt64))
			return
		}
		v.SetInt(int64(x))
	}
}

func (d *decoder) float(n ast.Node, v reflect.Value, key string) {
	switch f := n.(type) {
	case *ast.FloatNode:
		v.SetFloat(f.Value)
	case *ast.IntegerNode:
		x, err := strconv.ParseFloat(f.String(), 64)
		if err != nil {
			d.wrong(n, key, "a number")
			return
		}
		v.SetFloat(x)
	default:
		d.wrong(n, key, "a number")
	}
}

// textOf is the text of a node that was written as text.
func textOf(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	}
	return "", false
}

// wrong says that a node is of another kind than the key takes.
func (d *decoder) wrong(n ast.Node, key, want string) {
	d.fault(n, key, "expected %s; got %s", want, kindOf(n))
}

func kindOf(n ast.Node) string {
	switch x := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.BoolNode:
		return fmt.Sprint(x.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.String()
	case *ast.AliasNode:
		return "an alias, which job files do not have"
	}
	if text, ok := textOf(n); ok {
		return fmt.Sprintf("the text %q", text)
	}
	return n.Type().String()
}
