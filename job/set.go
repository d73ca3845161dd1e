package job

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// setFile stands for the file name in faults of values from the command line.
const setFile = "--set"

// override puts values from the command line into the tree. Each is "key=value", with a dotted key; the value is YAML, so
// that lists and numbers are what they are in the file.
func (d *decoder) override(root ast.Node, set []string) ast.Node {
	for _, s := range set {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			d.faults = append(d.faults, Fault{File: setFile, Msg: fmt.Sprintf("%q: expected key=value, such as checkpoint.every=5s", s)})
			continue
		}
		tree, err := parser.ParseBytes([]byte(nest(key, value)), 0)
		if err != nil || len(tree.Docs) != 1 {
			d.faults = append(d.faults, Fault{File: setFile, Key: key, Msg: fmt.Sprintf("%q is not a value", value)})
			continue
		}
		d.fromSet[key] = true
		root = merge(root, tree.Docs[0].Body)
	}
	return root
}

// nest writes a dotted key as a tree of one branch, in flow style.
func nest(key, value string) string {
	parts := strings.Split(key, ".")
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "{%q: ", p)
	}
	b.WriteString(value)
	b.WriteString(strings.Repeat("}", len(parts)))
	return b.String()
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
