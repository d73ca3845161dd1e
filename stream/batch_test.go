package stream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows lists a batch: position, next, records.
func rows(b *Batch[string]) (all []string) {
	for i := range b.Len() {
		records, at, next := b.At(i)
		line := Location{Name: "row", Row: at}.String() + ".." + Location{Name: "", Row: next}.String()
		for _, r := range records {
			line += " " + r.Value
		}
		all = append(all, line)
	}
	return all
}

func TestBatch(t *testing.T) {
	var b Batch[string]
	b.Row(3, 4)
	b.Emit(Record[string]{Value: "a"})
	b.Row(4, 9) // skipped
	b.Row(20, 21)
	b.Emit(Record[string]{Value: "b"})
	b.Emit(Record[string]{Value: "c"})
	if diff := cmp.Diff([]string{"row@3..@4 a", "row@4..@9", "row@20..@21 b c"}, rows(&b)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := len(b.Records()); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	b.Drop()
	b.Row(20, 30)
	b.Emit(Record[string]{Value: "d"})
	if diff := cmp.Diff([]string{"row@3..@4 a", "row@4..@9", "row@20..@30 d"}, rows(&b)); diff != "" {
		t.Errorf("rows after a drop (-want +got):\n%s", diff)
	}
	b.Bytes = 7
	b.Reset()
	if b.Len() != 0 || len(b.Records()) != 0 || b.Bytes != 0 {
		t.Errorf("after Reset: %d rows, %d records, %d bytes", b.Len(), len(b.Records()), b.Bytes)
	}
	b.Row(0, 1) // positions begin anew
	b.Drop()
	if b.Len() != 0 {
		t.Errorf("the only row was dropped, and %d are left", b.Len())
	}
}

// TestBatchRecordsAreApart: appending to the records of a row does not reach those of the next.
func TestBatchRecordsAreApart(t *testing.T) {
	var b Batch[string]
	b.Row(0, 1)
	b.Emit(Record[string]{Value: "a"})
	b.Row(1, 2)
	b.Emit(Record[string]{Value: "b"})
	first, _, _ := b.At(0)
	_ = append(first, Record[string]{Value: "x"})
	if second, _, _ := b.At(1); second[0].Value != "b" {
		t.Errorf("the second row has become %q", second[0].Value)
	}
}

func TestBatchPositionsGrow(t *testing.T) {
	for name, row := range map[string]func(b *Batch[string]){
		"no way forward":      func(b *Batch[string]) { b.Row(10, 10) },
		"backward":            func(b *Batch[string]) { b.Row(12, 11) },
		"into the row before": func(b *Batch[string]) { b.Row(4, 6) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			var b Batch[string]
			b.Row(0, 5)
			row(&b)
		}()
	}
}
