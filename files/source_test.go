package files

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// got is one record as a test sees it.
type got struct {
	Text     string
	At, Next int64
}

// readAll reads every split of src from the start, in order.
func readAll(t *testing.T, src *Source) []got {
	t.Helper()
	var all []got
	for _, s := range splits(t, src) {
		all = append(all, readSplit(t, src, s)...)
	}
	return all
}

func splits(t *testing.T, src *Source) (all []stream.Split) {
	t.Helper()
	e, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		s, err := e.Next(0)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
}

func readSplit(t *testing.T, src *Source, s stream.Split) (all []got) {
	t.Helper()
	r, err := src.NewReader(t.Context(), stream.ReaderContext{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[Record]
	for {
		err := r.Fetch(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			recs, at, next := b.At(i)
			if recs[0].Value.Err != nil {
				t.Fatal(recs[0].Value.Err)
			}
			all = append(all, got{string(recs[0].Value.Bytes), at, next})
		}
	}
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t *testing.T, o Options, paths ...string) *Source {
	t.Helper()
	src, err := NewSource(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestLinesOfAFile(t *testing.T) {
	p := write(t, "a", []byte("\xef\xbb\xbf{1}\r\n\n  \n{2}\n\n{3}"))
	want := []got{{"{1}", 0, 8}, {"  ", 9, 12}, {"{2}", 12, 16}, {"{3}", 17, 20}}
	if d := cmp.Diff(want, readAll(t, open(t, Options{}, p))); d != "" {
		t.Error(d)
	}
}

func TestEmptyFileHasNoRecords(t *testing.T) {
	if all := readAll(t, open(t, Options{}, write(t, "a", nil))); len(all) != 0 {
		t.Errorf("got %v, want none", all)
	}
}

// numbered is n lines of different lengths.
func numbered(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d%s\n", i, strings.Repeat("x", i%17))
	}
	return b.Bytes()
}

func wantLines(data []byte) (all []got) {
	at := int64(0)
	for l := range bytes.Lines(data) {
		next := at + int64(len(l))
		if text := strings.TrimSuffix(string(l), "\n"); text != "" {
			all = append(all, got{text, at, next})
		}
		at = next
	}
	return all
}

func TestRangesOfAFileHoldEveryLineOnce(t *testing.T) {
	data := numbered(40)
	p := write(t, "a", data)
	for size := int64(1); size < 40; size++ {
		src := open(t, Options{SplitBytes: size}, p)
		if d := cmp.Diff(wantLines(data), readAll(t, src)); d != "" {
			t.Fatalf("split size %d: %s", size, d)
		}
	}
}

func TestResumeAfterAnyRecord(t *testing.T) {
	data := numbered(60)
	for name, p := range map[string]string{"plain": write(t, "a", data), "gzip": write(t, "b", packGzip(data)), "zstd": write(t, "c", packZstd(t, data))} {
		t.Run(name, func(t *testing.T) {
			src := open(t, Options{SplitBytes: 300, FetchRecords: 7}, p)
			for _, s := range splits(t, src) {
				all := readSplit(t, src, s)
				for i, g := range all {
					s.Position = g.Next
					if d := cmp.Diff(all[i+1:], readSplit(t, src, s), cmp.Transformer("len", func(g []got) []got { return append([]got{}, g...) })); d != "" {
						t.Fatalf("split %s resumed at %d: %s", s.ID, g.Next, d)
					}
				}
			}
		})
	}
}

func packGzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func packZstd(t *testing.T, data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func TestCompressionIsRecognisedByContent(t *testing.T) {
	data := numbered(5000)
	twice := append(packGzip(data[:100]), packGzip(data[100:])...)
	for name, packed := range map[string][]byte{"a.txt": packGzip(data), "b.gz": data, "c.zip": packZstd(t, data), "d": twice} {
		if d := cmp.Diff(wantLines(data), readAll(t, open(t, Options{}, write(t, name, packed)))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestLinesLongerThanTheBuffer(t *testing.T) {
	long := strings.Repeat("y", 100_000)
	p := write(t, "a", []byte("1\n"+long+"\n2\n"+long))
	all := readAll(t, open(t, Options{FetchBytes: 1}, p))
	if len(all) != 4 || all[1].Text != long || all[2].Text != "2" || all[3].Text != long {
		t.Errorf("got %d records", len(all))
	}
}

func TestRecordTooLong(t *testing.T) {
	for _, size := range []int{20_001, 1_000_000} {
		p := write(t, "a", []byte("1\n"+strings.Repeat("y", size)+"\n2\n"))
		src := open(t, Options{MaxRecordBytes: 20_000, FetchBytes: 9000}, p)
		recs := fetchAll(t, src, splits(t, src)[0])
		if len(recs) != 3 {
			t.Fatalf("%d bytes: got %d records, want 3", size, len(recs))
		}
		if err := recs[1].Err; !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "20000") {
			t.Errorf("%d bytes: error %v", size, err)
		}
		if len(recs[1].Bytes) != tooLongKept || string(recs[2].Bytes) != "2" || recs[2].Err != nil {
			t.Errorf("%d bytes: kept %d bytes, then %q", size, len(recs[1].Bytes), recs[2].Bytes)
		}
	}
}

func fetchAll(t *testing.T, src *Source, s stream.Split) (all []Record) {
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer r.Close()
	if err := r.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[Record]
	for {
		err := r.Fetch(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range b.Records() {
			all = append(all, Record{Bytes: bytes.Clone(rec.Value.Bytes), Header: rec.Value.Header, Err: rec.Value.Err})
		}
	}
}

func TestLocationIsFileAndLine(t *testing.T) {
	data := []byte("1\n\n22\r\n333\n4")
	for name, p := range map[string]string{"plain": write(t, "a", data), "gzip": write(t, "b", packGzip(data))} {
		src := open(t, Options{SplitBytes: 4}, p)
		want := map[string]int64{"1": 1, "22": 3, "333": 4, "4": 5}
		for _, s := range splits(t, src) {
			r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
			if err := r.Open(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			var b stream.Batch[Record]
			for r.Fetch(t.Context(), &b) == nil {
				for _, rec := range b.Records() {
					loc := rec.At.Location()
					if loc.Name != p || loc.Line != want[string(rec.Value.Bytes)] {
						t.Errorf("%s: record %q is at %s", name, rec.Value.Bytes, loc)
					}
				}
			}
			r.Close()
		}
	}
}

func TestDamagedGzipNamesFileAndByte(t *testing.T) {
	packed := packGzip(numbered(100_000))
	p := write(t, "a.gz", packed[:len(packed)/2])
	src := open(t, Options{}, p)
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer r.Close()
	if err := r.Open(t.Context(), splits(t, src)[0]); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[Record]
	var err error
	for err == nil {
		err = r.Fetch(t.Context(), &b)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), p) || !strings.Contains(err.Error(), "at byte ") {
		t.Errorf("error %v", err)
	}
	if b.Len() != 0 {
		t.Errorf("%d rows beside an error", b.Len())
	}
}

func TestChangedFileIsRefused(t *testing.T) {
	p := write(t, "a", numbered(10))
	src := open(t, Options{}, p)
	s := splits(t, src)[0]
	if err := os.Truncate(p, 5); err != nil {
		t.Fatal(err)
	}
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer r.Close()
	if err := r.Open(t.Context(), s); err == nil || !strings.Contains(err.Error(), "changed") || !strings.Contains(err.Error(), p) {
		t.Errorf("error %v", err)
	}
}

func TestPathsAreCheckedBeforeWork(t *testing.T) {
	for want, paths := range map[string][]string{
		"paths is empty": nil, "paths[1]: pattern": {"a", "[x"}, "paths[0]: \"\"": {""},
		"together with files": {"a", "-"}, `paths[0]: "a\x00b"`: {"a\x00b"},
	} {
		if _, err := NewSource(paths, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewSource(%q): error %v, want %q", paths, err, want)
		}
	}
	_, err := NewSource([]string{"a"}, Options{MaxRecordBytes: -1, FetchBytes: -2})
	if err == nil || !strings.Contains(err.Error(), "MaxRecordBytes -1") || !strings.Contains(err.Error(), "FetchBytes -2") {
		t.Errorf("error %v, want both options named", err)
	}
	there := write(t, "a", nil)
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none-*"): "no file matches",
		filepath.Join(t.TempDir(), "n\none"): `there is no file "`,
		t.TempDir():                          "is a folder",
	} {
		src := open(t, Options{}, there, path)
		_, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{})
		var at *PathError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &at) || at.Index != 1 || at.Path != path || !at.Permanent() {
			t.Errorf("error %v of %q, want %q at path 1", err, path, want)
		}
	}
}

func TestPatternsAreSortedAndReadOnce(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b.ndjson", "a.ndjson", "[x].ndjson"} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(n+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src := open(t, Options{}, filepath.Join(dir, "*.ndjson"), filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "[x].ndjson"))
	all := readAll(t, src)
	if len(all) != 3 || all[0].Text != "[x].ndjson" || all[1].Text != "a.ndjson" || all[2].Text != "b.ndjson" {
		t.Errorf("got %v", all)
	}
}

func TestStdin(t *testing.T) {
	in, out := io.Pipe()
	src := open(t, Options{}, Stdin).WithStdin(in)
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	if err := r.Open(t.Context(), splits(t, src)[0]); err != nil {
		t.Fatal(err)
	}
	var b stream.Batch[Record]
	go out.Write([]byte("1\n2"))
	if err := r.Fetch(t.Context(), &b); err != nil || b.Len() != 1 {
		t.Fatalf("%d rows, error %v", b.Len(), err)
	}
	// A fetch that blocks ends with its context, and nothing is lost.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Fetch(ctx, &b); !errors.Is(err, context.Canceled) || b.Len() != 0 {
		t.Fatalf("%d rows, error %v", b.Len(), err)
	}
	go func() { out.Write([]byte("2\n")); out.Close() }()
	var all []string
	for {
		err := r.Fetch(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range b.Records() {
			all = append(all, string(rec.Value.Bytes))
		}
	}
	if d := cmp.Diff([]string{"22"}, all); d != "" {
		t.Error(d)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	s := splits(t, src)[0]
	s.Position = 2
	if err := r.Open(t.Context(), s); err == nil || !strings.Contains(err.Error(), "--from none") {
		t.Errorf("resuming standard input: error %v", err)
	}
}

func TestEnumeratorState(t *testing.T) {
	p := write(t, "a", numbered(100))
	src := open(t, Options{SplitBytes: 200}, p)
	e, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := e.Next(0)
	second, _ := e.Next(1)
	second.Position += 10
	e.Return(1, []stream.Split{second})
	state, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{State: state})
	if err != nil {
		t.Fatal(err)
	}
	var a, b []stream.Split
	for s, err := e.Next(0); err == nil; s, err = e.Next(0) {
		a = append(a, s)
	}
	for s, err := again.Next(0); err == nil; s, err = again.Next(0) {
		b = append(b, s)
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	if last := a[len(a)-1]; last.ID != second.ID || last.Position != second.Position || first.ID == second.ID {
		t.Errorf("returned split came back as %+v", last)
	}
	for _, bad := range []string{"", "{}", `{"kind":"files.enumerator","version":2}`, `{"kind":"files.split","version":1}`} {
		if _, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{State: []byte(bad)}); err == nil {
			t.Errorf("state %q was taken", bad)
		}
	}
}

// The bytes of version 1 are read for ever.
func TestDurableForms(t *testing.T) {
	want := part{Kind: splitKind, Version: 1, Path: "events/a.ndjson", Start: 10, End: 20, Size: 30}
	p, err := parsePart([]byte(`{"kind":"files.split","version":1,"path":"events/a.ndjson","start":10,"end":20,"size":30}`))
	if err != nil || p != want {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := parsePart([]byte(`{"kind":"files.split","version":1,"path":"a","start":10,"end":2}`)); err == nil {
		t.Error("an impossible range was taken")
	}
	e, err := restoreEnumerator([]byte(`{"kind":"files.enumerator","version":1,"size":7,"queue":[{"ID":"a","Data":"e30=","Position":3}]}`))
	if err != nil || e.size != 7 || len(e.queue) != 1 || e.queue[0].Position != 3 || string(e.queue[0].Data) != "{}" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\r\n"), int64(3), 2)
	f.Add(numbered(30), int64(7), 5)
	f.Fuzz(func(t *testing.T, data []byte, splitBytes int64, records int) {
		if splitBytes < 1 || records < 1 || len(data) > 1<<16 || int64(len(data))/splitBytes > 1000 {
			return
		}
		if packed := bytes.HasPrefix(data, magic[packedGzip]) || bytes.HasPrefix(data, magic[packedZstd]); packed {
			return
		}
		p := write(t, "a", data)
		whole := readAll(t, open(t, Options{}, p))
		parts := readAll(t, open(t, Options{SplitBytes: splitBytes, FetchRecords: records, FetchBytes: 1}, p))
		if d := cmp.Diff(whole, parts); d != "" {
			t.Error(d)
		}
	})
}

func TestRecordsWithoutAnEngine(t *testing.T) {
	data := numbered(50)
	src := open(t, Options{SplitBytes: 100}, write(t, "a", data), write(t, "b", packGzip(data)))
	n := 0
	for rec, err := range src.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := wantLines(data)[n%50].Text; string(rec.Value.Bytes) != want {
			t.Fatalf("record %d is %q, want %q", n, rec.Value.Bytes, want)
		}
		n++
	}
	if n != 100 {
		t.Errorf("got %d records, want 100", n)
	}
	for range src.Records(t.Context()) {
		break // closes what is open, or the leak check fails
	}
	for _, err := range open(t, Options{}, "no such file").Records(t.Context()) {
		if err == nil {
			t.Error("no error for a file that is not there")
		}
	}
}
