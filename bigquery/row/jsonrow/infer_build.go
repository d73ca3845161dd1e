package jsonrow

import (
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// builder turns nodes into columns.
type builder struct {
	options  *InferOptions
	columns  int
	choices  []Choice
	noColumn []string
}

// object makes the columns of an object that lies below depth STRUCTs. column is the dotted path of its column.
func (b *builder) object(n *node, column string, depth int) ([]table.Field, *Keys) {
	var with []string // keys that get a column
	for _, key := range n.keys {
		if n.children[key].content() {
			with = append(with, key)
		}
	}
	reserved := ""
	if depth == 0 {
		reserved = b.options.Rest
	}
	names := nameColumns(with, reserved)
	var fields []table.Field
	keys := &Keys{}
	for _, key := range n.keys {
		child := n.children[key]
		name, ok := names[key]
		if !ok {
			b.without(child)
			continue
		}
		b.columns++
		f := table.Field{Name: name.name}
		path := table.Join(column, name.name)
		if name.why != "" {
			f.Description = describeKey(key)
			b.choose(Choice{Path: child.path, Decision: name.decision, Column: path, Why: name.why})
		}
		members := b.column(child, &f, path, depth)
		fields = append(fields, f)
		keys.add(key, members)
	}
	return fields, keys
}

func (k *Keys) add(key string, members *Keys) {
	if members != nil && k.Members == nil {
		k.Members = make([]*Keys, len(k.Names), len(k.Names)+1)
	}
	k.Names = append(k.Names, key)
	if k.Members != nil {
		k.Members = append(k.Members, members)
	}
}

func (b *builder) choose(c Choice) { b.choices = append(b.choices, c) }

// without records that a field has no column.
func (b *builder) without(n *node) {
	b.noColumn = append(b.noColumn, n.path)
	why := "it only ever was " + n.seen(true)
	switch k, ok := n.only(); {
	case n.forced:
		why = "it held nothing"
	case !ok && n.counts[kindNull] > 0:
		why = "it only ever was null"
	case ok && k == kindArray && n.element == nil:
		why = "its arrays were all empty"
	case ok && k == kindObject && len(n.keys) == 0:
		why = "its objects were all empty"
	case ok:
		why = "nothing in it holds a value"
	}
	b.choose(Choice{Path: n.path, Decision: NoColumn, Why: why})
}

// column fills in the type of a column, and answers the keys of its members.
func (b *builder) column(n *node, f *table.Field, path string, depth int) *Keys {
	if n.forced {
		f.Type = table.JSON
		return nil
	}
	k, ok := n.only()
	switch {
	case !ok:
		b.json(n, f, path, "it held "+n.seen(false))
	case k == kindObject:
		return b.structure(n, n, f, path, depth)
	case k == kindArray:
		return b.array(n, f, path, depth)
	default:
		b.scalar(n, n, k, f, path)
	}
	return nil
}

// json makes the whole field a JSON column.
func (b *builder) json(n *node, f *table.Field, path, why string) {
	f.Type, f.Mode = table.JSON, table.Nullable
	b.choose(Choice{Path: n.path, Decision: AsJSON, Column: path, Type: table.JSON, Why: why})
}

// structure makes a STRUCT of the objects of, which are the field's own values or its arrays' elements.
func (b *builder) structure(n, of *node, f *table.Field, path string, depth int) *Keys {
	if depth >= table.MaxDepth {
		b.json(n, f, path, fmt.Sprintf("it lies below %d STRUCTs, the most BigQuery has", table.MaxDepth))
		return nil
	}
	f.Type = table.Struct
	fields, keys := b.object(of, path, depth+1)
	f.Fields = fields
	return keys
}

func (b *builder) array(n *node, f *table.Field, path string, depth int) *Keys {
	e := n.element
	k, ok := e.only()
	switch {
	case e.forced:
		f.Type, f.Mode = table.JSON, table.Repeated
		return nil
	case e.counts[kindNull] > 0 || !ok:
		b.json(n, f, path, "its arrays held "+e.seen(true))
		return nil
	case k == kindArray:
		b.json(n, f, path, "its arrays held arrays")
		return nil
	}
	f.Mode = table.Repeated
	if k == kindObject {
		return b.structure(n, e, f, path, depth)
	}
	b.scalar(n, e, k, f, path)
	return nil
}

// scalar types a field by its values of kind k, which are its own or its arrays' elements.
func (b *builder) scalar(n, of *node, k kind, f *table.Field, path string) {
	var decision Decision
	why := ""
	switch {
	case k == kindBool:
		f.Type = table.Bool
	case k == kindNumber:
		f.Type, why = of.numberType()
		decision = AsDecimal
	case !of.notTimestamp && !b.options.TimesAsStrings:
		f.Type, decision, why = table.Timestamp, AsTime, "its strings are RFC 3339 timestamps"
		if of.respelt {
			why += "; they read back in UTC, with 3 or 6 fractional digits or none"
		}
	case !of.notDate && !b.options.TimesAsStrings:
		f.Type, decision, why = table.Date, AsDate, "its strings are dates"
	default:
		f.Type = table.String
	}
	if f.Type == table.JSON {
		b.json(n, f, path, why)
	} else if why != "" {
		b.choose(Choice{Path: n.path, Decision: decision, Column: path, Type: f.Type, Why: why, Respelt: decision == AsTime && of.respelt})
	}
}

// numberType is the smallest type that changes none of the numbers, and why it is none of the usual two.
func (n *node) numberType() (t table.Type, why string) {
	switch {
	case !n.fractional && !n.beyondInt64:
		return table.Int64, ""
	case n.fractional && !n.beyondFloat:
		return table.Float64, ""
	case n.fractional:
		why = "FLOAT64 would change some of its numbers"
	default:
		why = "some of its numbers are beyond INT64"
	}
	switch {
	case !n.beyondNumeric:
		return table.Numeric, why
	case !n.beyondBigNumeric:
		return table.BigNumeric, why
	}
	return table.JSON, "some of its numbers are beyond BIGNUMERIC"
}
