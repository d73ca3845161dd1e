package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

var avroSchema = avro.MustParse(`{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}`)

// avroFile holds the texts 0 to n-1, so many in a block.
func avroFile(t testing.TB, n, perBlock int, opts ...ocf.WriterOpt) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avroSchema, opts...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := w.Encode(map[string]any{"s": fmt.Sprintf("text %06d", i)})
		if err == nil && (i+1)%perBlock == 0 {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkAvro reports records that are not the texts 0 to n-1 in order.
func checkAvro(t *testing.T, all []got, n int) {
	t.Helper()
	if len(all) != n {
		t.Fatalf("%d records, want %d", len(all), n)
	}
	for i, g := range all {
		if want := fmt.Sprintf("\x16text %06d", i); g.Text != want {
			t.Fatalf("record %d is %q, want %q", i, g.Text, want)
		}
	}
}

func TestAvroRangesHoldEveryRecordOnce(t *testing.T) {
	data := avroFile(t, 1000, 7, ocf.WithCodec(ocf.SnappyCodec()))
	for _, size := range []int64{1, 100, 333, 1000, 1 << 20} {
		src := open(t, Options{Format: Avro, SplitBytes: size}, write(t, "a.avro", data))
		if size == 333 && len(splits(t, src)) < 10 {
			t.Errorf("%d ranges", len(splits(t, src)))
		}
		checkAvro(t, readAll(t, src), 1000)
	}
	for _, packed := range [][]byte{packGzip(data)} {
		checkAvro(t, readAll(t, open(t, Options{Format: Avro, SplitBytes: 100}, write(t, "a.avro.gz", packed))), 1000)
	}
}

func TestAvroResumesAfterAnyRecord(t *testing.T) {
	src := open(t, Options{Format: Avro, SplitBytes: 500, FetchRecords: 3}, write(t, "a.avro", avroFile(t, 200, 7)))
	for _, s := range splits(t, src) {
		whole := readSplit(t, src, s)
		for i, g := range whole {
			s.Position = g.Next
			rest := readSplit(t, src, s)
			if len(rest) != len(whole)-i-1 || len(rest) > 0 && rest[0] != whole[i+1] {
				t.Fatalf("%s after position %d: %d records, want %d", s.ID, g.Next, len(rest), len(whole)-i-1)
			}
		}
	}
}

func TestAvroSourceKeepsItsPromises(t *testing.T) {
	path := write(t, "a.avro", avroFile(t, 200, 7))
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprintf("\x16text %06d", i))
	}
	streamtest.TestSource(t, streamtest.SourceHarness[Record]{
		New: func(streamtest.TB) stream.Source[Record] {
			return open(t, Options{Format: Avro, SplitBytes: 500}, path)
		},
		Want: want,
		Text: func(r stream.Record[Record]) string { return string(r.Value.Bytes) },
	})
}

func TestAvroDamageNamesFileOffsetAndRecord(t *testing.T) {
	data := avroFile(t, 20, 5)
	r := bytes.LastIndex(data, []byte("\x16text 000017"))
	data[r] = 0x7f // a length beyond the block
	src := open(t, Options{Format: Avro}, write(t, "bad.avro", data))
	good := 0
	err := lastErr(t, src, func(b *stream.Batch[Record]) { good += b.Len() })
	for _, want := range []string{"bad.avro", "block at byte", "record 2 of 5"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if good != 17 || !isLasting(err) {
		t.Errorf("%d good records and a lasting error: %v, want 17 and true", good, isLasting(err))
	}
	data = avroFile(t, 20, 5)
	for cut := range len(data) {
		err := lastErr(t, open(t, Options{Format: Avro}, write(t, "cut.avro", data[:cut])), func(*stream.Batch[Record]) {})
		if err == nil || err != io.EOF && !strings.Contains(err.Error(), "cut short") {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

func TestAvroBombIsRefused(t *testing.T) {
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, avroSchema, ocf.WithCodec(ocf.DeflateCodec(-1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Encode(map[string]any{"s": strings.Repeat("a", 8<<20)}), w.Close()); err != nil {
		t.Fatal(err)
	}
	err = lastErr(t, open(t, Options{Format: Avro, MaxBlockBytes: 1 << 20}, write(t, "bomb.avro", out.Bytes())), func(*stream.Batch[Record]) {})
	if err == nil || !strings.Contains(err.Error(), "maxBlockBytes") || !isLasting(err) {
		t.Errorf("%v, want a refusal", err)
	}
}

// A fetch of standard input that is interrupted loses nothing, in the middle of a block either.
func TestAvroFromStandardInput(t *testing.T) {
	data := avroFile(t, 100, 50)
	pr, pw := io.Pipe()
	src := open(t, Options{Format: Avro}, Stdin).WithStdin(pr)
	go func() { // ends with the data, or when the pipe is closed
		for _, b := range data {
			if _, err := pw.Write([]byte{b}); err != nil {
				return
			}
		}
		pw.Close()
	}()
	defer pr.Close()
	r, err := src.NewReader(t.Context(), stream.ReaderContext{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(t.Context(), splits(t, src)[0]); err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	var all []got
	for {
		var b stream.Batch[Record]
		err := r.Fetch(interrupted, &b)
		if errors.Is(err, context.Canceled) {
			err = r.Fetch(t.Context(), &b)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			recs, at, next := b.At(i)
			all = append(all, got{string(recs[0].Value.Bytes), at, next})
		}
	}
	checkAvro(t, all, 100)
}

func TestAvroSchema(t *testing.T) {
	path := write(t, "a.avro", avroFile(t, 1, 1))
	got, err := open(t, Options{Format: Avro}, path).AvroSchema(nil)
	if _, bad := avro.Parse(got); err != nil || bad != nil || !strings.Contains(got, `"R"`) {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, Options{Format: Avro}, path).AvroSchema(nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want an error with the file's name", err)
	}
}
