package arrowout

import (
	"bytes"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func message(t *testing.T, p ipc.Payload, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var out bytes.Buffer
	if _, err := p.WritePayload(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read is a session's schema and batches of two rows and three.
func read(t *testing.T) (schema []byte, batches []Batch) {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	schema = message(t, ipc.GetSchemaPayload(s, memory.DefaultAllocator), nil)
	for _, doc := range []string{`[{"i": 1}, {"i": null}]`, `[{"i": 3}, {"i": 4}, {"i": 5}]`} {
		b, n, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		_ = n
		p, err := ipc.GetRecordBatchPayload(b)
		batches = append(batches, Batch{message(t, p, err), b.NumRows()})
	}
	return schema, batches
}

func given(batches []Batch, err error) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
		if err != nil {
			yield(Batch{}, err)
		}
	}
}

func rowsIn(t *testing.T, stream []byte) (rows int64) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return rows
}

func TestStreams(t *testing.T) {
	schema, batches := read(t)
	var whole, cut, none bytes.Buffer
	if n, err := Stream(&whole, schema, given(batches, nil)); n != 5 || err != nil || rowsIn(t, whole.Bytes()) != 5 {
		t.Errorf("%d rows, %v", n, err)
	}
	batches[1].Rows = 1
	if n, err := CutStream(&cut, schema, given(batches, nil)); n != 3 || err != nil || rowsIn(t, cut.Bytes()) != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	if n, err := Stream(&none, schema, given(nil, nil)); n != 0 || err != nil || rowsIn(t, none.Bytes()) != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestErrorsComeThrough(t *testing.T) {
	schema, batches := read(t)
	broken := errors.New("broken")
	for name, write := range map[string]func() (int64, error){
		"stream":  func() (int64, error) { return Stream(&bytes.Buffer{}, schema, given(batches[:1], broken)) },
		"cut":     func() (int64, error) { return CutStream(&bytes.Buffer{}, schema, given(batches[:1], broken)) },
		"parquet": func() (int64, error) { return Parquet(&bytes.Buffer{}, schema, given(batches[:1], broken)) },
	} {
		if n, err := write(); n != 2 || !errors.Is(err, broken) {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
	batches[0].Rows = 3
	if _, err := Parquet(&bytes.Buffer{}, schema, given(batches, nil)); err == nil {
		t.Error("a batch of fewer rows than it says: want an error")
	}
	batches[0].Data = nil
	if _, err := CutStream(&bytes.Buffer{}, schema, given(batches, nil)); err == nil {
		t.Error("no batch: want an error")
	}
	if _, err := Parquet(&bytes.Buffer{}, schema[:4], given(nil, nil)); err == nil {
		t.Error("a schema that is cut: want an error")
	}
}
