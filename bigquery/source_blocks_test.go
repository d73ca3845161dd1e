package bigquery

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/localbq"
)

// TestSavedSessionsReadOn reads a few rows of every stream, saves the session, and reads the others with the session as another
// process would restore it.
func TestSavedSessionsReadOn(t *testing.T) {
	t.Parallel()
	var c localbq.Config
	c.Profile.Limits.ReadSplitBytes, c.Profile.Limits.ReadBlockRows = 240, 3
	l := startLocal(t, c)
	want := idDocs(200)
	l.write(t, idName, want...)
	src := l.source(t, SourceOptions{})
	session, err := src.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if session.Streams() < 2 {
		t.Fatalf("%d streams", session.Streams())
	}
	restored, err := l.source(t, SourceOptions{}).Restore(session.Save())
	if err != nil {
		t.Fatal(err)
	}
	if restored.Name() != session.Name() || restored.Expires() != session.Expires() || restored.Table() != session.Table() ||
		restored.Streams() != session.Streams() {
		t.Errorf("restored %s of %s with %d streams", restored.Name(), restored.Table(), restored.Streams())
	}
	var got []string
	for n := range session.Streams() {
		first := blocksOf(t, session, n, 0, 4)
		got = append(got, first...)
		got = append(got, blocksOf(t, restored, n, int64(len(first)), -1)...)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := sessions(t, l); got != 1 {
		t.Errorf("%d read sessions were created", got)
	}
}

func sessions(t *testing.T, l *local) int {
	t.Helper()
	n := 0
	for call, err := range l.Audit().Records() {
		if err != nil {
			t.Fatal(err)
		}
		if call.RPC == "CreateReadSession" {
			n++
		}
	}
	return n
}

// blocksOf reads the rows of a stream from one on, most of them at most, -1 is all.
func blocksOf(t *testing.T, s *ReadSession[string], n int, from int64, most int) (docs []string) {
	t.Helper()
	r := s.BlockReader()
	defer r.Close()
	d, err := s.BlockDecoder()
	if err != nil {
		t.Fatal(err)
	}
	w := jsonrow.NewWriter(jsonrow.WriteOptions{})
	var last float64
	err = r.Blocks(t.Context(), n, from, func(b Block) error {
		if b.Offset != from+int64(len(docs)) && most < 0 {
			t.Errorf("a block at %d, want %d", b.Offset, from+int64(len(docs)))
		}
		if b.Progress <= last {
			t.Errorf("progress %v after %v", b.Progress, last)
		}
		last = b.Progress
		for b.Rows > 0 && len(docs) != most {
			row, err := d.Next(&b)
			if err != nil {
				return err
			}
			doc, err := w.AppendJSON(nil, row)
			if err != nil {
				return err
			}
			docs = append(docs, string(doc))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 && most < 0 && len(docs) > 0 {
		t.Errorf("progress ends with %v", last)
	}
	return docs
}

func TestSavedSessionsAreChecked(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	l.write(t, idName, idDocs(3)...)
	src := l.source(t, SourceOptions{})
	session, err := src.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	saved := session.Save()
	for n := range saved {
		if _, err := src.Restore(saved[:n]); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(saved))
		}
	}
	newer := slices.Clone(saved)
	newer[2] = 9
	if _, err := src.Restore(newer); err == nil || !strings.Contains(err.Error(), "version 9: this program reads versions 1 to 1") {
		t.Errorf("another version: %v", err)
	}
	if _, err := RestoreArrow(saved, readTable, SourceOptions{Connection: l.connection}); err == nil || !strings.Contains(err.Error(), "another format") {
		t.Errorf("a session in Avro: %v", err)
	}
	arrow, err := ReadArrow(t.Context(), readTable, SourceOptions{Connection: l.connection})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := RestoreArrow(arrow.Save(), readTable, SourceOptions{Connection: l.connection}); err != nil || again.Name() != arrow.Name() {
		t.Errorf("%v", err)
	}
	r := session.BlockReader()
	defer r.Close()
	if err := r.Blocks(t.Context(), 1, 0, nil); err == nil || !strings.Contains(err.Error(), "stream 1 of a session with 1") {
		t.Errorf("a stream that is none: %v", err)
	}
}

// TestPartsAreTheBytesOfBlocks: what is passed on in parts is what blocks hold, with a limit within one too.
func TestPartsAreTheBytesOfBlocks(t *testing.T) {
	t.Parallel()
	var c localbq.Config
	c.Profile.Limits.ReadBlockRows = 70
	l := startLocal(t, c)
	l.write(t, idName, idDocs(200)...)
	for _, o := range []SourceOptions{{}, {Limit: 100}, {CompressResponses: true}} {
		session, err := l.source(t, o).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := session.BlockReader()
		defer r.Close()
		var whole, parts [][]byte
		for n := range session.Streams() {
			if err := errors.Join(
				r.Blocks(t.Context(), n, 0, func(b Block) error { whole = append(whole, b.Data); return nil }),
				r.Parts(t.Context(), n, 0, func(b Block) error {
					if b.Data != nil {
						t.Error("there are Data too")
					}
					parts = append(parts, slices.Concat(b.Parts...))
					b.Free()
					return nil
				})); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(whole, parts); diff != "" || len(whole) < 2 {
			t.Errorf("%d blocks: %s", len(whole), diff)
		}
	}
	session, err := l.source(t, SourceOptions{}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := session.BlockReader()
	defer r.Close()
	if err := r.Parts(t.Context(), session.Streams(), 0, nil); err == nil {
		t.Error("a stream that there is not")
	}
}
