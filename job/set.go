package job

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// setFile stands for the file name in faults of values from the command line.
const setFile = "--set"

// override puts values from the command line into the tree. Each is "key=value", with a dotted key; the value is YAML, so
// that lists and numbers are what they are in the file. A key with nothing behind it is taken away.
func (d *decoder) override(root ast.Node, set []string) ast.Node {
	for _, s := range set {
		key, value, ok := strings.Cut(s, "=")
		refuse := func(key, format string, args ...any) {
			d.faults = append(d.faults, Fault{File: setFile, Key: key, Msg: fmt.Sprintf(format, args...)})
		}
		switch {
		case !utf8.ValidString(s):
			refuse("", "%q is not valid UTF-8", s)
		case !ok || key == "":
			refuse("", "%q: expected key=value, such as checkpoint.every=5s", s)
		case strings.Count(key, ".") > maxDepth || strings.Contains("."+key+".", ".."):
			refuse(key, "is no key: expected names with dots between, such as checkpoint.every")
		case strings.TrimSpace(value) == "":
			d.fromSet[key] = true
			root = without(root, strings.Split(key, "."))
		default:
			branch, ok := d.branch(strings.Split(key, "."), value)
			if !ok {
				refuse(key, "%q is not a value", value)
				continue
			}
			root = merge(root, branch)
		}
	}
	return root
}

// branch is a tree of one value under the parts of its key.
func (d *decoder) branch(key []string, value string) (ast.Node, bool) {
	tree, err := parser.ParseBytes([]byte(value), 0)
	if err != nil || len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, false
	}
	n := tree.Docs[0].Body
	ast.Walk(unplace{}, n)
	for i := len(key) - 1; i >= 0; i-- {
		// JSON is YAML: a key in quotes is text whatever it looks like.
		name, err := parser.ParseBytes(fmt.Appendf(nil, "{%q: 0}", key[i]), 0)
		if err != nil {
			return nil, false
		}
		pairs, ok := pairsOf(name.Docs[0].Body)
		if !ok || len(pairs) != 1 {
			return nil, false
		}
		ast.Walk(unplace{}, name.Docs[0].Body)
		pairs[0].Value = n
		n = name.Docs[0].Body
	}
	return n, true
}

// unplace takes the places of nodes away, which are in no file.
type unplace struct{}

func (u unplace) Visit(n ast.Node) ast.Visitor {
	if t := n.GetToken(); t != nil && t.Position != nil {
		t.Position.Line = ofSet
	}
	return u
}

// merge puts the branch over into base, where the same keys meet, and in place of it everywhere else.
func merge(base, over ast.Node) ast.Node {
	have, ok := pairsOf(bare(base))
	add, ok2 := pairsOf(over)
	if !ok || !ok2 {
		return over
	}
	merged := ast.Mapping(base.GetToken(), false, have...)
	for _, a := range add {
		found := false
		for i, h := range merged.Values {
			if keyText(h.Key) == keyText(a.Key) {
				pair := *h
				pair.Value = merge(h.Value, a.Value)
				merged.Values[i] = &pair
				found = true
			}
		}
		if !found {
			merged.Values = append(merged.Values, a)
		}
	}
	return merged
}

// without takes a key away from base, with everything below it.
func without(base ast.Node, key []string) ast.Node {
	have, ok := pairsOf(bare(base))
	if !ok {
		return base
	}
	left := ast.Mapping(base.GetToken(), false)
	for _, h := range have {
		switch {
		case keyText(h.Key) != key[0]:
			left.Values = append(left.Values, h)
		case len(key) > 1:
			pair := *h
			pair.Value = without(h.Value, key[1:])
			left.Values = append(left.Values, &pair)
		}
	}
	return left
}
