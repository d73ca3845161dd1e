package rowtest

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is the input of the serializers below.
type record struct {
	id    int64
	name  []byte // nil is NULL
	count []int64
}

var schema = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64},
	{Name: "name", Type: table.String},
	{Name: "count", Type: table.Int64, Mode: table.Repeated},
}}

// plain is a serializer written by hand. Its switches break one promise each.
type plain struct {
	asked   atomic.Int64
	noSkip  bool   // writes records it should skip
	skipAll bool   // takes empty rows for skips
	dropOld bool   // forgets what was in the buffer
	keepOld bool   // scribbles over the buffer
	aliased bool   // gives out memory of the record
	own     []byte // not nil: every row is written here, and given out
	noRange bool   // lets a bad value pass
	vague   bool   // has an error without a field
	wrong   bool   // writes another number
	garbage bool   // writes no protobuf
	extra   bool   // writes a field nobody knows
	moody   bool   // changes its schema and its fingerprint
	message func(*descriptorpb.DescriptorProto)
}

func (p *plain) Schema(table.Destination) (*table.Schema, error) {
	if p.moody && p.asked.Add(1) > 1 {
		return &table.Schema{Fields: schema.Fields[:2]}, nil
	}
	return schema, nil
}

func (p *plain) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	d, err := row.Descriptor(schema)
	if p.message != nil {
		p.message(d)
	}
	return d, err
}

func (p *plain) Fingerprint(table.Destination) uint64 {
	if p.moody {
		return uint64(p.asked.Add(1))
	}
	return 0
}

func (p *plain) AppendRow(buf []byte, _ table.Destination, rec record) ([]byte, error) {
	switch {
	case rec.id == -1 && !p.noSkip, p.skipAll && rec.id == 0 && rec.name == nil:
		return buf, row.ErrSkip
	case rec.id < -1 && p.vague:
		return buf, errors.New("negative")
	case rec.id < -1 && !p.noRange:
		return buf, &row.Error{Kind: row.KindRange, Path: "id", Offset: -1, Msg: "negative"}
	case p.garbage:
		return append(buf, 0xff), nil
	case p.dropOld:
		buf = nil
	case p.keepOld && len(buf) > 0:
		buf[0]++
	case p.aliased && rec.name != nil:
		return rec.name, nil
	case p.own != nil:
		p.own = p.appendTo(append(p.own[:0], buf...), rec)
		return p.own, nil
	}
	return p.appendTo(buf, rec), nil
}

func (p *plain) appendTo(buf []byte, rec record) []byte {
	if rec.id != 0 {
		if p.wrong {
			rec.id++
		}
		buf = row.AppendInt(append(buf, 0x08), rec.id)
	}
	if rec.name != nil {
		buf = row.AppendText(append(buf, 0x12), rec.name)
	}
	for _, n := range rec.count {
		buf = row.AppendInt(append(buf, 0x18), n)
	}
	if p.extra {
		buf = append(buf, 0x20, 0x01)
	}
	return buf
}

func format(p *plain) Format[record] {
	return Format[record]{
		New: func() (row.Serializer[record], error) { return p, nil },
		Cases: []Case[record]{
			{Name: "all", Record: func() record { return record{5, []byte("\x08\x05"), []int64{1, 300}} },
				Values: []row.Value{{Int: 5}, Text("\x08\x05"), List(row.Value{Int: 1}, row.Value{Int: 300})}},
			{Name: "empty", Record: func() record { return record{} }, Values: []row.Value{Null, Null, {}}},
			{Name: "skip", Record: func() record { return record{id: -1} }, Skip: true},
			{Name: "bad", Record: func() record { return record{id: -2} }, Err: &row.Error{Kind: row.KindRange, Path: "id"}},
		},
		Scribble: func(rec record) { clear(rec.name); clear(rec.count) },
	}
}

func TestGoodSerializerPasses(t *testing.T) { Test(t, format(&plain{})) }

func TestBrokenSerializersFail(t *testing.T) {
	edit := func(change func(*descriptorpb.DescriptorProto)) *plain { return &plain{message: change} }
	for _, c := range []struct {
		name  string
		p     *plain
		check string
	}{
		{"SER-1 writes what it should skip", &plain{noSkip: true}, CheckSkip},
		{"SER-2 skips empty rows", &plain{skipAll: true}, CheckSkip},
		{"drops the buffer", &plain{dropOld: true}, CheckAppend},
		{"changes the buffer", &plain{keepOld: true}, CheckAppend},
		{"SER-4 gives out the record's memory", &plain{aliased: true}, CheckAlias},
		{"accepts a bad value", &plain{noRange: true}, CheckError},
		{"has an error without a field", &plain{vague: true}, CheckError},
		{"writes another number", &plain{wrong: true}, CheckValues},
		{"writes no protobuf", &plain{garbage: true}, CheckValues},
		{"writes an unknown field", &plain{extra: true}, CheckValues},
		{"changes its mind", &plain{moody: true}, CheckStable},
		{"lacks a field", edit(func(d *descriptorpb.DescriptorProto) { d.Field = d.Field[:2] }), CheckDescriptor},
		{"misnames a field", edit(func(d *descriptorpb.DescriptorProto) { d.Field[1].Name = proto.String("other") }), CheckDescriptor},
		{"has another type", edit(func(d *descriptorpb.DescriptorProto) {
			d.Field[0].Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
		}), CheckDescriptor},
		{"is no list", edit(func(d *descriptorpb.DescriptorProto) {
			d.Field[2].Label, d.Field[2].Options = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), nil
		}), CheckDescriptor},
		{"does not stand alone", edit(func(d *descriptorpb.DescriptorProto) {
			d.Field[0].Type, d.Field[0].TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".Elsewhere")
		}), CheckDescriptor},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := Run(format(c.p))
			if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Check == c.check }) {
				t.Errorf("problems %v, want one of %q", problems, c.check)
			}
		})
	}
}

// TestReusedMemoryIsFound (SER-4) has a serializer write every row into the same memory. It is checked on one goroutine:
// more would race.
func TestReusedMemoryIsFound(t *testing.T) {
	s := &suite[record]{Format: format(&plain{own: make([]byte, 0, 100)})}
	if !s.setup() || !s.descriptor() {
		t.Fatal(s.problems)
	}
	for _, c := range s.Cases {
		s.check(c)
	}
	if !slices.ContainsFunc(s.problems, func(p Problem) bool { return p.Check == CheckAlias && p.Case == "all" }) {
		t.Errorf("problems %v, want one of %q", s.problems, CheckAlias)
	}
}

// SER-6
func TestSharedStateIsFound(t *testing.T) {
	f := format(&plain{})
	calls := new(atomic.Int64)
	f.New = func() (row.Serializer[record], error) {
		if calls.Add(1) == 1 {
			return &plain{}, nil
		}
		return &plain{wrong: true}, nil // what a race would do, without one
	}
	problems := Run(f)
	if len(problems) != 1 || problems[0].Check != CheckConcurrent {
		t.Errorf("problems %v, want one of %q", problems, CheckConcurrent)
	}
	f.New = func() (row.Serializer[record], error) { return nil, errors.New("no") }
	if problems := Run(f); len(problems) != 1 || problems[0].Check != CheckSetup {
		t.Errorf("problems %v, want one of %q", problems, CheckSetup)
	}
}

func TestProblemNamesItsCase(t *testing.T) {
	problems := Run(format(&plain{wrong: true}))
	if len(problems) == 0 || !strings.HasPrefix(problems[0].String(), "values: all: ") {
		t.Errorf("problems %v, want the first to name check and case", problems)
	}
}

func TestDifference(t *testing.T) {
	columns := []table.Field{
		{Name: "s", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "r", Type: table.Range, Range: table.Date}}},
		{Name: "i", Type: table.Interval},
	}
	values := func() []row.Value {
		return []row.Value{List(List(List(row.Value{Int: 1}, Null))), List(row.Value{Int: 1}, row.Value{Int: 2}, row.Value{Int: 3})}
	}
	if d := difference(values(), values(), columns, ""); d != "" {
		t.Errorf("equal rows differ: %s", d)
	}
	for _, c := range []struct {
		change func([]row.Value)
		want   string
	}{
		{func(v []row.Value) { v[0].List = nil }, "s has 0 elements, want 1"},
		{func(v []row.Value) { v[0].List[0].List[0].List[1] = row.Value{} }, "s[0].r.end is NULL: false, want true"},
		{func(v []row.Value) { v[0].List[0].List[0].List[0].Int = 9 }, `s[0].r.start is 9 "", want 1 ""`},
		{func(v []row.Value) { v[0].List[0] = Null }, "s[0] is NULL: true, want false"},
		{func(v []row.Value) { v[1].List[2].Int = 9 }, `i.micros is 9 "", want 3 ""`},
		{func(v []row.Value) { v[1].List = nil }, `"i" has 0 values, want 3, for 3 columns`},
	} {
		got := values()
		c.change(got)
		if d := difference(values(), got, columns, ""); d != c.want {
			t.Errorf("difference %q, want %q", d, c.want)
		}
	}
}

func TestBigEndian(t *testing.T) {
	for _, c := range []struct{ little, big string }{{"\x00", "\x00"}, {"\xff", "\xff"}, {"\x80\x00", "\x00\x80"}, {"\x00\x80", "\x80\x00"}, {"\x00\x36\x65\xc4", "\xc4\x65\x36\x00"}} {
		if got := string(bigEndian([]byte(c.little))); got != c.big {
			t.Errorf("bigEndian(%x) = %x, want %x", c.little, got, c.big)
		}
	}
}
