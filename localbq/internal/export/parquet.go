package export

import (
	"errors"
	"io"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

var packings = map[string]parquet.WriterOption{
	"NONE": parquet.Compression(&parquet.Uncompressed), "GZIP": parquet.Compression(&parquet.Gzip),
	"SNAPPY": parquet.Compression(&parquet.Snappy), "ZSTD": parquet.Compression(&parquet.Zstd),
}

func writeParquet(w io.Writer, s *schema.Schema, batches []arrow.RecordBatch, o Options) error {
	out := parquet.NewWriter(w, parquet.NewSchema("schema", groupNode(s.Fields)), packings[o.Compression])
	leaves := 0
	root := parquetColumns(s.Fields, &leaves)
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			r := &shredder{columns: make([][]parquet.Value, leaves)}
			for _, c := range root {
				r.column(c, b.Column(c.at), i, 0, 0, 0)
			}
			if _, err := out.WriteRows([]parquet.Row{parquet.MakeRow(r.columns...)}); err != nil {
				return errors.Join(err, out.Close())
			}
		}
	}
	return out.Close()
}

// groupNode is the type of a row or a STRUCT. A REPEATED column is a list of three levels (BigQuery documentation, "Export
// table data to Cloud Storage", "Parquet export details").
func groupNode(fields []*schema.Field) parquet.Node {
	g := parquet.Group{}
	for _, f := range fields {
		n := typeNode(f)
		switch f.Mode {
		case schema.Repeated:
			n = parquet.List(n)
		case schema.Nullable:
			n = parquet.Optional(n)
		}
		g[f.Name] = n
	}
	return g
}

func typeNode(f *schema.Field) parquet.Node {
	switch f.Type {
	case schema.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case schema.Int64:
		return parquet.Leaf(parquet.Int64Type)
	case schema.Float64:
		return parquet.Leaf(parquet.DoubleType)
	case schema.Bytes:
		return parquet.Leaf(parquet.ByteArrayType)
	case schema.Date:
		return parquet.Date()
	case schema.Time:
		return parquet.TimeAdjusted(parquet.Microsecond, false)
	case schema.DateTime:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case schema.Timestamp:
		if !f.Picos() {
			return parquet.Timestamp(parquet.Microsecond)
		}
	case schema.Numeric, schema.BigNumeric:
		p, s := f.Decimals()
		return parquet.Decimal(int(s), int(p), parquet.FixedLenByteArrayType(decimalBytes(f)))
	case schema.Struct:
		return groupNode(f.Fields)
	}
	return parquet.String()
}

// decimalBytes is the width of a decimal.
func decimalBytes(f *schema.Field) int {
	if f.Type == schema.BigNumeric {
		return 32
	}
	return 16
}

// parquetColumn is a column with its place in the file, where columns are in the order of their names.
type parquetColumn struct {
	field   *schema.Field
	at      int // in the schema
	leaf    int // of a scalar
	leaves  int // how many there are below, the first of which is leaf
	members []*parquetColumn
}

func parquetColumns(fields []*schema.Field, leaves *int) []*parquetColumn {
	byName := map[string]int{}
	for i, f := range fields {
		byName[f.Name] = i
	}
	var out []*parquetColumn
	for _, named := range groupNode(fields).Fields() {
		at := byName[named.Name()]
		c := &parquetColumn{field: fields[at], at: at, leaf: *leaves}
		if c.field.Type == schema.Struct {
			c.members = parquetColumns(c.field.Fields, leaves)
		} else {
			*leaves++
		}
		c.leaves = *leaves - c.leaf
		out = append(out, c)
	}
	return out
}

// shredder takes one row apart into columns with levels.
type shredder struct{ columns [][]parquet.Value }

// column adds a column's value. rep is the level the next value repeats at, deep the level of the innermost list around, def
// that of what is there.
func (s *shredder) column(c *parquetColumn, a arrow.Array, i, rep, deep, def int) {
	list, repeated := a.(*array.List)
	switch {
	case repeated:
		from, to := list.ValueOffsets(i)
		if from == to || list.IsNull(i) {
			s.absent(c, rep, def)
			return
		}
		for k := from; k < to; k++ {
			s.present(c, list.ListValues(), int(k), rep, deep+1, def+1)
			rep = deep + 1
		}
		return
	case c.field.Mode == schema.Nullable && a.IsNull(i):
		s.absent(c, rep, def)
		return
	case c.field.Mode == schema.Nullable:
		def++
	}
	s.present(c, a, i, rep, deep, def)
}

func (s *shredder) absent(c *parquetColumn, rep, def int) {
	for leaf := c.leaf; leaf < c.leaf+c.leaves; leaf++ {
		s.columns[leaf] = append(s.columns[leaf], parquet.NullValue().Level(rep, def, leaf))
	}
}

func (s *shredder) present(c *parquetColumn, a arrow.Array, i, rep, deep, def int) {
	if c.field.Type != schema.Struct {
		s.columns[c.leaf] = append(s.columns[c.leaf], parquetValue(c.field, a, i).Level(rep, def, c.leaf))
		return
	}
	group := a.(*array.Struct)
	for _, m := range c.members {
		s.column(m, group.Field(m.at), i, rep, deep, def)
	}
}

func parquetValue(f *schema.Field, a arrow.Array, i int) parquet.Value {
	switch v := a.(type) {
	case *array.Boolean:
		return parquet.BooleanValue(v.Value(i))
	case *array.Int64:
		return parquet.Int64Value(v.Value(i))
	case *array.Float64:
		return parquet.DoubleValue(v.Value(i))
	case *array.Binary:
		return parquet.ByteArrayValue(v.Value(i))
	case *array.Date32:
		return parquet.Int32Value(int32(v.Value(i)))
	case *array.Time64:
		return parquet.Int64Value(int64(v.Value(i)))
	case *array.Timestamp:
		return parquet.Int64Value(int64(v.Value(i)))
	case *array.Decimal128:
		return parquet.FixedLenByteArrayValue(wide(v.Value(i).BigInt(), decimalBytes(f)))
	case *array.Decimal256:
		return parquet.FixedLenByteArrayValue(wide(v.Value(i).BigInt(), decimalBytes(f)))
	}
	return parquet.ByteArrayValue(appendText(nil, f, a, i))
}

// wide is two's complement of so many bytes, the most significant first.
func wide(v *big.Int, n int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}
