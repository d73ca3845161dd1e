package cdc_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

func sequence(t *testing.T, text string) cdc.Sequence {
	t.Helper()
	if text == "" {
		return cdc.Sequence{}
	}
	s, err := cdc.ParseSequence(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSequences(t *testing.T) {
	t.Run("LBQ-111 five sections, 17 digits and other text are refused", func(t *testing.T) {
		for _, text := range []string{
			"", "/", "1/", "/1", "1//2", "1/2/3/4/5", "1/2/3/4/", "00000000000000000", "10000000000000000", "G", "0x1", " 1", "1 ", "1\n",
			"-1", "+1", "١", "1.0", "\x00", "\xff", strings.Repeat("1", 1<<20), strings.Repeat("/", 1<<20),
		} {
			if s, err := cdc.ParseSequence(text); err == nil {
				t.Errorf("%.40q is taken for %s", text, s)
			} else if len(err.Error()) > 500 {
				t.Errorf("%.40q: a message of %d bytes", text, len(err.Error()))
			}
		}
	})
	ascending := []string{"", "0", "A/1", "A/B", "A/0100", "B", "FF", "1FF/0", "FFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFF/0/0/1"}
	t.Run("LBQ-109 the first section decides", func(t *testing.T) {
		for i, a := range ascending {
			for j, b := range ascending {
				want := 0
				if i < j {
					want = -1
				} else if i > j {
					want = 1
				}
				if got := sequence(t, a).Compare(sequence(t, b)); got != want {
					t.Errorf("%q and %q compare as %d, want %d", a, b, got, want)
				}
			}
		}
		if sequence(t, "FF").Compare(sequence(t, "1/FF")) <= 0 {
			t.Error("FF does not outrank 1/FF")
		}
	})
	t.Run("LBQ-110 zeros in front and sections left out change nothing", func(t *testing.T) {
		for _, pair := range [][2]string{{"F", "000F"}, {"f", "F"}, {"1", "1/0/0/0"}, {"a/0", "A"}} {
			if sequence(t, pair[0]) != sequence(t, pair[1]) {
				t.Errorf("%s and %s differ", pair[0], pair[1])
			}
		}
	})
}

func TestTypes(t *testing.T) {
	for text, want := range map[string][2]bool{"UPSERT": {false, true}, "DELETE": {true, true}, "upsert": {}, "MERGE": {}, "": {}, "INSERT": {}} {
		if deletes, ok := cdc.ParseType(text); deletes != want[0] || ok != want[1] {
			t.Errorf("%q: %t, %t", text, deletes, ok)
		}
	}
}

func TestDurableChanges(t *testing.T) {
	in := []cdc.Change{{}, {Delete: true}, {Sequence: sequence(t, "FFFFFFFFFFFFFFFF/1")}, {Delete: true, Sequence: sequence(t, "0")}}
	encoded := cdc.Append(nil, in)
	out, err := cdc.Parse(encoded)
	if err != nil || !reflect.DeepEqual(in, out) {
		t.Fatalf("%v comes back as %v (%v)", in, out, err)
	}
	for _, bad := range []string{"\x04", "\x02", "\x02\xff", "\x03\x01\x01\x01"} {
		if _, err := cdc.Parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func text(values ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for _, v := range values {
		if v == "NULL" {
			b.AppendNull()
			continue
		}
		b.Append(v)
	}
	return b.NewArray()
}

func decimals(scale int32, values ...int64) arrow.Array {
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: scale})
	for _, v := range values {
		b.Append(decimal128.FromI64(v))
	}
	return b.NewArray()
}

func TestKeys(t *testing.T) {
	t.Run("columns do not run into one another", func(t *testing.T) {
		left, right := text("a", "ab", "NULL", "", "\x00"), text("bc", "c", "", "NULL", "\x01")
		seen := map[string]int{}
		for row := range left.Len() {
			key := string(cdc.AppendKey(nil, []arrow.Array{left, right}, row))
			if other, twice := seen[key]; twice {
				t.Errorf("rows %d and %d share a key", other, row)
			}
			seen[key] = row
		}
	})
	t.Run("a decimal is the same at another scale", func(t *testing.T) {
		a, b := decimals(2, 1250, -100, 0), decimals(9, 12_500_000_000, -1_000_000_000, 0)
		for row := range a.Len() {
			x, y := cdc.AppendKey(nil, []arrow.Array{a}, row), cdc.AppendKey(nil, []arrow.Array{b}, row)
			if !bytes.Equal(x, y) {
				t.Errorf("row %d: %x and %x", row, x, y)
			}
		}
		if one, minus := cdc.AppendKey(nil, []arrow.Array{decimals(0, 1)}, 0), cdc.AppendKey(nil, []arrow.Array{decimals(0, -1)}, 0); bytes.Equal(one, minus) {
			t.Error("1 and -1 share a key")
		}
	})
}

func TestIndex(t *testing.T) {
	key := []byte("k")
	upsert := func(seq string) cdc.Change { return cdc.Change{Sequence: sequence(t, seq)} }
	t.Run("a change replaces all rows that no change brought", func(t *testing.T) {
		x := cdc.NewIndex()
		x.Add(key, 1)
		x.Add(key, 2)
		out := x.Apply(key, upsert(""), 3, 10, 100)
		if !out.Wins || !reflect.DeepEqual(out.Removed, []int64{1, 2}) || out.Mixed {
			t.Errorf("%+v", out)
		}
	})
	t.Run("LBQ-112 a tombstone holds against lower changes, until it is forgotten", func(t *testing.T) {
		x := cdc.NewIndex()
		x.Apply(key, cdc.Change{Delete: true, Sequence: sequence(t, "5")}, 0, 10, 100)
		if out := x.Apply(key, upsert("4"), 1, 110, 100); out.Wins {
			t.Error("the lower change won")
		}
		if out := x.Apply(key, upsert("4"), 2, 111, 100); !out.Wins {
			t.Error("the tombstone is older than its retention and still there")
		}
	})
	t.Run("changes with and without a sequence number are mixed", func(t *testing.T) {
		x := cdc.NewIndex()
		x.Apply(key, upsert("5"), 1, 10, 100)
		if out := x.Apply(key, upsert(""), 2, 11, 100); out.Wins || !out.Mixed {
			t.Errorf("%+v", out)
		}
	})
	t.Run("old tombstones are swept", func(t *testing.T) {
		x := cdc.NewIndex()
		for i := range int64(100_000) {
			x.Apply([]byte{byte(i), byte(i >> 8), byte(i >> 16)}, cdc.Change{Delete: true}, 0, i, 1000)
		}
		if x.Len() > 10_000 {
			t.Errorf("%d keys are kept for 1000 that count", x.Len())
		}
	})
}

// TestIndexAgainstAModel compares the index with the obvious way: all changes of a key, the greatest picked at the end. In
// between it goes through its durable form.
func TestIndexAgainstAModel(t *testing.T) {
	type arrival struct {
		cdc.Change
		row int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		x, model, rows := cdc.NewIndex(), map[byte][]arrival{}, map[int64]byte{}
		for row := range int64(60) {
			key := byte(random.IntN(5))
			c := cdc.Change{Delete: random.IntN(3) == 0}
			if random.IntN(4) > 0 {
				c.Sequence = sequence(t, string("0123456789"[random.IntN(10)]))
			}
			out := x.Apply([]byte{key}, c, row, row, 1<<40)
			for _, gone := range out.Removed {
				delete(rows, gone)
			}
			if out.Wins && !c.Delete {
				rows[row] = key
			}
			model[key] = append(model[key], arrival{c, row})
			if random.IntN(10) == 0 {
				again := cdc.NewIndex()
				for _, piece := range x.Encode(8) {
					if err := again.Decode(piece); err != nil {
						t.Fatal(err)
					}
				}
				x = again
			}
		}
		want := map[int64]byte{}
		for key, arrivals := range model {
			best := arrivals[0]
			for _, a := range arrivals[1:] {
				if a.Sequence.Compare(best.Sequence) >= 0 {
					best = a
				}
			}
			if !best.Delete {
				want[best.row] = key
			}
		}
		if !reflect.DeepEqual(rows, want) {
			t.Fatalf("rows %v, want %v", rows, want)
		}
	}
}

func FuzzSequence(f *testing.F) {
	for _, seed := range []string{"1", "A/B", "1/2/3/4", "ffffffffffffffff/0", "/", "1/2/3/4/5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s cdc.Sequence
		var err error
		hostile.Proportional(t, len(text), 64, 1<<16, func() { s, err = cdc.ParseSequence(text) })
		if err != nil {
			return
		}
		again, err := cdc.ParseSequence(s.String())
		if err != nil || again != s {
			t.Errorf("%q is %s, which is %s (%v)", text, s, again, err)
		}
	})
}

func FuzzIndex(f *testing.F) {
	x := cdc.NewIndex()
	x.Add([]byte("a"), 7)
	s, _ := cdc.ParseSequence("1/2")
	x.Apply([]byte("b"), cdc.Change{Delete: true, Sequence: s}, 0, 99, 1)
	for _, piece := range x.Encode(1 << 20) {
		f.Add(piece)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		hostile.Proportional(t, len(b), 512, 1<<16, func() { _ = cdc.NewIndex().Decode(b) })
	})
}
