package protorow_test

import (
	"math"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/row/protorow/internal/testpb"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func full() *testpb.Modern {
	inner := &testpb.Inner{S: "in", N: 7}
	return &testpb.Modern{
		FInt32: -1, FSint32: -2, FSfixed32: -3, FInt64: -4, FSint64: -5, FSfixed64: -6, FUint32: 7, FFixed32: 8, FUint64: 9, FFixed64: 10,
		FFloat: 1.5, FDouble: 2.5, FBool: true, FString: "text", FBytes: []byte("bytes"), FColor: testpb.Color_RED, FAlias: testpb.Alias_B, FInner: inner,
		OInt32: proto.Int32(0), OString: proto.String(""), OColor: testpb.Color_COLOR_UNSPECIFIED.Enum(), Choice: &testpb.Modern_CText{CText: ""},
		WTimestamp: &timestamppb.Timestamp{Seconds: 1, Nanos: 2999}, WDuration: &durationpb.Duration{Seconds: -1}, WMask: &fieldmaskpb.FieldMask{Paths: []string{"a", "b"}},
		WStruct: &structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewBoolValue(true)}}, WValue: structpb.NewNumberValue(1.5),
		WList: &structpb.ListValue{}, WAny: &anypb.Any{TypeUrl: "x.Y", Value: []byte("p")},
		WInt32: wrapperspb.Int32(1), WUint32: wrapperspb.UInt32(2), WInt64: wrapperspb.Int64(3), WUint64: wrapperspb.UInt64(4), WFloat: wrapperspb.Float(5), WDouble: wrapperspb.Double(6),
		WBool: wrapperspb.Bool(false), WString: wrapperspb.String(""), WBytes: wrapperspb.Bytes([]byte("w")),
		RInt64: []int64{1, -1}, RUint64: []uint64{1}, RDouble: []float64{0.5}, RBool: []bool{true, false}, RString: []string{"", "r"}, RBytes: [][]byte{[]byte("rb")},
		RColor: []testpb.Color{testpb.Color_GREEN, 9}, RInner: []*testpb.Inner{{}, inner}, RTimestamp: []*timestamppb.Timestamp{{Seconds: 1}},
		RWrapped: []*wrapperspb.Int64Value{wrapperspb.Int64(0)}, RStruct: []*structpb.Struct{{}},
		MText: map[string]int64{"b": 2, "a": 1, "c": 3}, MInt: map[int32]string{-1: "n", 1: "p"}, MUint: map[uint64]*testpb.Inner{math.MaxInt64: inner},
		MBool: map[bool]*timestamppb.Timestamp{true: {Seconds: 1}, false: {}}, MColor: map[string]testpb.Color{"k": testpb.Color_RED}, MWrapped: map[string]*wrapperspb.Int64Value{"k": wrapperspb.Int64(5)},
		FooBar: 80, FarAway: "far",
	}
}

func num(n int64) row.Value     { return row.Value{Int: n} }
func float(f float64) row.Value { return row.Value{Int: int64(math.Float64bits(f))} }

// fullValues are the columns of full, in the order of declaration.
func fullValues() []row.Value {
	text, list, null := rowtest.Text, rowtest.List, rowtest.Null
	inner := list(text("in"), num(7))
	return []row.Value{
		num(-1), num(-2), num(-3), num(-4), num(-5), num(-6), num(7), num(8), num(9), num(10),
		float(1.5), float(2.5), num(1), text("text"), text("bytes"), text("RED"), text("A"), inner,
		num(0), text(""), text("COLOR_UNSPECIFIED"), null, text(""), null,
		num(1_000_002), num(-1_000_000), text("a,b"), text(`{"k":true}`), text("1.5"), text("[]"), list(text("x.Y"), text("p")), text("NULL_VALUE"),
		num(1), num(2), num(3), num(4), float(5), float(6), num(0), text(""), text("w"),
		list(num(1), num(-1)), list(num(1)), list(float(0.5)), list(num(1), num(0)), list(text(""), text("r")), list(text("rb")),
		list(text("GREEN"), text("UNKNOWN_ENUM_VALUE_Color_9")), list(list(text(""), num(0)), inner), list(num(1_000_000)),
		list(num(0)), list(text("{}")),
		list(list(text("a"), num(1)), list(text("b"), num(2)), list(text("c"), num(3))), list(list(num(-1), text("n")), list(num(1), text("p"))), list(list(num(math.MaxInt64), inner)),
		list(list(num(0), num(0)), list(num(1), num(1_000_000))), list(list(text("k"), text("RED"))), list(list(text("k"), num(5))),
		num(80), text("far"),
	}
}

// emptyValues are the columns of an empty Modern.
func emptyValues() []row.Value {
	out := make([]row.Value, len(fullValues()))
	for i := range out {
		switch {
		case i < 10, i == 12, i == len(out)-2:
			out[i] = num(0)
		case i == 10, i == 11:
			out[i] = float(0)
		case i == 13, i == 14, i == len(out)-1:
			out[i] = rowtest.Text("")
		case i >= 41 && i < 58:
			out[i] = row.Value{}
		default:
			out[i] = rowtest.Null
		}
	}
	out[15], out[16], out[31] = rowtest.Text("COLOR_UNSPECIFIED"), rowtest.Text("ALIAS_ZERO"), rowtest.Text("NULL_VALUE")
	return out
}

type badModern struct {
	name   string
	change func(*testpb.Modern)
	kind   row.Kind
	path   string
}

var badMessages = []badModern{
	{"too large", func(m *testpb.Modern) { m.FUint64 = 1 << 63 }, row.KindRange, "f_uint64"},
	{"too large in a list", func(m *testpb.Modern) { m.RUint64 = []uint64{0, 1 << 63} }, row.KindRange, "r_uint64[1]"},
	{"too large in a map", func(m *testpb.Modern) { m.MUint = map[uint64]*testpb.Inner{1: {}, 1 << 63: {}} }, row.KindRange, "m_uint[1].key"},
	{"too large in a wrapper", func(m *testpb.Modern) { m.WUint64 = wrapperspb.UInt64(1 << 63) }, row.KindRange, "w_uint64"},
	{"text", func(m *testpb.Modern) { m.FString = "\xff" }, row.KindText, "f_string"},
	{"text in a list", func(m *testpb.Modern) { m.RString = []string{"", "\xff"} }, row.KindText, "r_string[1]"},
	{"text in a message", func(m *testpb.Modern) { m.RInner = []*testpb.Inner{{S: "\xff"}} }, row.KindText, "r_inner[0].s"},
	{"text in a key", func(m *testpb.Modern) { m.MText = map[string]int64{"\xff": 1} }, row.KindText, "m_text[0].key"},
	{"text in a mask", func(m *testpb.Modern) { m.WMask = &fieldmaskpb.FieldMask{Paths: []string{"\xff"}} }, row.KindText, "w_mask"},
	{"text in a wrapper", func(m *testpb.Modern) { m.WString = wrapperspb.String("\xff") }, row.KindText, "w_string"},
	{"text in JSON", func(m *testpb.Modern) { m.WValue = structpb.NewStringValue("\xff") }, row.KindPrint, "w_value"},
	{"time", func(m *testpb.Modern) { m.RTimestamp = []*timestamppb.Timestamp{{}, {Nanos: -1}} }, row.KindRange, "r_timestamp[1]"},
	{"value without a kind", func(m *testpb.Modern) { m.WValue = &structpb.Value{} }, row.KindPrint, "w_value"},
}

func modernCases() (cases []rowtest.Case[*testpb.Modern]) {
	cases = append(cases,
		rowtest.Case[*testpb.Modern]{Name: "full", Record: full, Values: fullValues()},
		rowtest.Case[*testpb.Modern]{Name: "empty", Record: func() *testpb.Modern { return &testpb.Modern{} }, Values: emptyValues()},
		rowtest.Case[*testpb.Modern]{Name: "nil", Record: func() *testpb.Modern { return nil }, Err: &row.Error{Kind: row.KindType}})
	for _, b := range badMessages {
		cases = append(cases, rowtest.Case[*testpb.Modern]{Name: b.name, Err: &row.Error{Kind: b.kind, Path: b.path},
			Record: func() *testpb.Modern { m := full(); b.change(m); return m }})
	}
	return cases
}

// SER-1 to SER-6 are what the suite checks.
func TestGeneratedMessages(t *testing.T) {
	rowtest.Test(t, rowtest.Format[*testpb.Modern]{
		New: func() (row.Serializer[*testpb.Modern], error) {
			return protorow.New[*testpb.Modern](protorow.Options{})
		},
		Cases: modernCases(),
		Scribble: func(m *testpb.Modern) {
			clear(m.FBytes)
			for _, b := range m.RBytes {
				clear(b)
			}
			clear(m.RInt64)
			proto.Reset(m)
		},
	})
}

// others are the cases of the generated type as records of another form.
func others[T any](t *testing.T, make func(*testpb.Modern) T) (cases []rowtest.Case[T]) {
	t.Helper()
	for _, c := range modernCases() {
		if c.Name == "nil" || c.Err != nil && c.Err.Kind == row.KindText || c.Name == "text in JSON" {
			continue // has no wire form
		}
		cases = append(cases, rowtest.Case[T]{Name: c.Name, Values: c.Values, Err: c.Err, Record: func() T { return make(c.Record()) }})
	}
	return cases
}

func wireForm(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDynamicMessages(t *testing.T) {
	md := (&testpb.Modern{}).ProtoReflect().Descriptor()
	rowtest.Test(t, rowtest.Format[*dynamicpb.Message]{
		New: func() (row.Serializer[*dynamicpb.Message], error) {
			return protorow.Of[*dynamicpb.Message](md, protorow.Options{})
		},
		Cases: others(t, func(m *testpb.Modern) *dynamicpb.Message {
			d := dynamicpb.NewMessage(md)
			if err := proto.Unmarshal(wireForm(t, m), d); err != nil {
				t.Fatal(err)
			}
			return d
		}),
		Scribble: func(m *dynamicpb.Message) { clear(m.Get(md.Fields().ByName("f_bytes")).Bytes()) },
	})
}

func TestMessagesInWireForm(t *testing.T) {
	md := (&testpb.Modern{}).ProtoReflect().Descriptor()
	cases := append(others(t, func(m *testpb.Modern) []byte { return wireForm(t, m) }),
		rowtest.Case[[]byte]{Name: "no message", Record: func() []byte { return []byte{0x08} }, Err: &row.Error{Kind: row.KindType}},
		rowtest.Case[[]byte]{Name: "nil is an empty message", Record: func() []byte { return nil }, Values: emptyValues()})
	rowtest.Test(t, rowtest.Format[[]byte]{
		New: func() (row.Serializer[[]byte], error) {
			return protorow.Wire(md, func(b []byte) []byte { return b }, protorow.Options{})
		},
		Cases:    cases,
		Scribble: func(b []byte) { clear(b) },
	})
}

func TestTypesThatAreNone(t *testing.T) {
	read := func(b []byte) []byte { return b }
	_, ofNil := protorow.Of[proto.Message](nil, protorow.Options{})
	_, wireNil := protorow.Wire(nil, read, protorow.Options{})
	_, noRead := protorow.Wire[[]byte]((&testpb.Inner{}).ProtoReflect().Descriptor(), nil, protorow.Options{})
	_, anyMessage := protorow.New[proto.Message](protorow.Options{})
	_, dynamic := protorow.New[*dynamicpb.Message](protorow.Options{})
	for name, err := range map[string]error{"Of nil": ofNil, "Wire nil": wireNil, "Wire without bytes": noRead, "New of any message": anyMessage, "New of dynamic messages": dynamic} {
		if got := faultsOf(err); got != "C-ROOT" {
			t.Errorf("%s: %v, want C-ROOT", name, err)
		}
	}
}

func TestRecordsOfAnotherType(t *testing.T) {
	s, err := protorow.Of[proto.Message]((&testpb.Inner{}).ProtoReflect().Descriptor(), protorow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, rec := range map[string]proto.Message{"another message": &testpb.Node{}, "nil": nil, "a nil message": (*testpb.Inner)(nil), "a nil dynamic message": (*dynamicpb.Message)(nil)} {
		if _, err := s.AppendRow(nil, table.Destination{}, rec); faultsOf(err) != "R-TYPE" {
			t.Errorf("%s: %v, want R-TYPE", name, err)
		}
	}
	if b, err := s.AppendRow(nil, table.Destination{}, &testpb.Inner{N: 1}); err != nil || string(b) != "\x0a\x00\x10\x01" {
		t.Errorf("a generated message: %x, %v, want a row", b, err)
	}
}

// SER-36: fields of the row's descriptor are in lower case.
func TestDescriptorIsLowerCase(t *testing.T) {
	s, err := protorow.New[*testpb.Modern](protorow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Descriptor(table.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Field[len(d.Field)-2].GetName(); got != "foobar" {
		t.Errorf("SER-36 field %q, want foobar", got)
	}
}
