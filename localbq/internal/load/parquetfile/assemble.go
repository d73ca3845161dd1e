package parquetfile

import (
	"bytes"
	"fmt"
	"math/big"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// assembly puts one record together from the values of its columns, whose levels say what is there and what repeats
// (parquet-format, README.md, "Nested Encoding").
type assembly struct {
	values [][]parquet.Value // what is left, by leaf
}

func (a *assembly) members(n *node) (column.Record, error) {
	out := make(column.Record, 0, len(n.members))
	for _, m := range n.members {
		v, err := a.value(m)
		if err != nil {
			return nil, err
		}
		out = append(out, column.Member{Name: m.name, Value: v})
	}
	return out, nil
}

func (a *assembly) value(n *node) (any, error) {
	if len(a.values[n.first]) == 0 {
		return nil, fmt.Errorf("the Parquet file is damaged: column '%s' ends early", n.path)
	}
	if n.mode == schema.Repeated {
		return a.list(n)
	}
	if n.mode == schema.Nullable && a.values[n.first][0].DefinitionLevel() < n.def {
		a.skip(n)
		return nil, nil
	}
	return a.present(n)
}

// skip passes over the place of a value that is not there.
func (a *assembly) skip(n *node) {
	for i := n.first; i < n.first+n.count; i++ {
		a.values[i] = a.values[i][min(1, len(a.values[i])):]
	}
}

// list reads the elements of a repeated field.
func (a *assembly) list(n *node) (any, error) {
	out := column.List{}
	if a.values[n.first][0].DefinitionLevel() < n.def {
		a.skip(n)
		return out, nil
	}
	for {
		v, err := a.present(n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if left := a.values[n.first]; len(left) == 0 || left[0].RepetitionLevel() != n.rep {
			return out, nil
		}
	}
}

// present reads a value that is there.
func (a *assembly) present(n *node) (any, error) {
	switch {
	case n.leaf != nil:
		v := a.values[n.first][0]
		a.values[n.first] = a.values[n.first][1:]
		return n.scalar(v)
	case n.list != nil:
		return a.unwrapped(n)
	}
	r, err := a.members(n)
	if n.emptied {
		return column.List{}, err
	}
	return r, err
}

// unwrapped is a list without the group around each element.
func (a *assembly) unwrapped(n *node) (any, error) {
	v, err := a.value(n.list)
	list, ok := v.(column.List)
	if err != nil || !ok || n.element() == nil {
		return v, err
	}
	for i, e := range list {
		list[i] = e.(column.Record)[0].Value
	}
	return list, nil
}

func (n *node) scalar(v parquet.Value) (any, error) {
	if v.Kind() != n.leaf.kind { // of another kind the value would be read as an address
		return nil, fmt.Errorf("the Parquet file is damaged: column '%s' holds a value of another type", n.path)
	}
	switch n.leaf.kind {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32:
		return n.integer(int64(v.Int32())), nil
	case parquet.Int64:
		return n.integer(v.Int64()), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	case parquet.Int96:
		// Nanoseconds of the day, and the Julian day.
		w := v.Int96()
		nanos := int64(uint64(w[1])<<32 | uint64(w[0]))
		return column.Timestamp((int64(w[2])-2_440_588)*86_400_000_000 + nanos/1000), nil
	}
	b := v.ByteArray()
	switch {
	case n.leaf.decimal:
		return column.Decimal{Unscaled: signed(b), Scale: n.leaf.scale}, nil
	case n.leaf.text:
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("Parquet column '%s' holds text that is not UTF-8", n.path)
		}
		return string(b), nil
	}
	return bytes.Clone(b), nil
}

func (n *node) integer(v int64) any {
	if n.leaf.decimal {
		return column.Decimal{Unscaled: big.NewInt(v), Scale: n.leaf.scale}
	}
	switch {
	case n.leaf.unit < 0:
		v *= -n.leaf.unit
	case n.leaf.unit > 1:
		v = floor(v, n.leaf.unit)
	}
	switch n.target {
	case schema.Date:
		return column.Date(v)
	case schema.Time:
		return column.Time(v)
	case schema.DateTime:
		return column.DateTime(v)
	case schema.Timestamp:
		return column.Timestamp(v)
	}
	return v
}

func floor(v, by int64) int64 {
	q := v / by
	if v%by < 0 {
		q--
	}
	return q
}

// signed reads two's complement, the most significant byte first.
func signed(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}
