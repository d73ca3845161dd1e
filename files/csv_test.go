package files

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/stream"
)

func csvSource(t testing.TB, o Options, texts ...string) *Source {
	t.Helper()
	folder := t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, string(rune('a'+i))+".csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.Format = CSV
	src, err := NewSource([]string{filepath.Join(folder, "*.csv")}, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// titled are the records of a source, as header|record.
func titled(t testing.TB, src *Source) (all []string) {
	t.Helper()
	for rec, err := range src.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		header := "-"
		if rec.Value.Header != nil {
			header = string(rec.Value.Header)
		}
		text := header + "|" + string(rec.Value.Bytes)
		if rec.Value.Err != nil {
			text = header + "|" + rec.Value.Err.Error()
		}
		all = append(all, text)
	}
	return all
}

func TestCSV(t *testing.T) {
	for name, c := range map[string]struct {
		o     CSVOptions
		texts []string
		want  []string
	}{
		"a header for each file": {CSVOptions{}, []string{"a,b\n1,2\n", "b,a\r\n3,4\r\n\r\n5,6"}, []string{"a,b|1,2", "b,a|3,4", "b,a|5,6"}},
		"no header":              {CSVOptions{NoHeader: true}, []string{"1,2\n"}, []string{"-|1,2"}},
		"rows before it":         {CSVOptions{SkipRows: 2}, []string{"report\n\nof \"today\n\na,b\n1,2\n"}, []string{"a,b|1,2"}},
		"rows, no header":        {CSVOptions{SkipRows: 1, NoHeader: true}, []string{"report\n1,2\n"}, []string{"-|1,2"}},
		"quoted line ends":       {CSVOptions{}, []string{"a,\"b\nc\"\n1,\"x\r\n\n\"\"\n\"\n2,\"\"\n"}, []string{"a,\"b\nc\"|1,\"x\r\n\n\"\"\n\"", "a,\"b\nc\"|2,\"\""}},
		"quotes within cells":    {CSVOptions{}, []string{"a\n5\" disk\n6\n"}, []string{"a|5\" disk", "a|6"}},
		"behind a quote":         {CSVOptions{}, []string{"a\n\"x\"y\n6\n"}, []string{"a|\"x\"y", "a|6"}},
		"a quote left open":      {CSVOptions{}, []string{"a\n1\n\"x\n6\n"}, []string{"a|1", "a|\"x\n6\n"}},
		"another quote":          {CSVOptions{Quote: '\'', Delimiter: ';'}, []string{"a\n'x\n';\"\n"}, []string{"a|'x\n';\""}},
		"no quotes":              {CSVOptions{NoQuotes: true}, []string{"a\n\"x\ny\"\n"}, []string{"a|\"x", "a|y\""}},
		"a byte order mark":      {CSVOptions{}, []string{"\xef\xbb\xbfa\n1\n"}, []string{"a|1"}},
		"only a header":          {CSVOptions{}, []string{"a,b\n"}, nil},
		"nothing at all":         {CSVOptions{}, []string{""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			// However little is read at a time.
			for _, size := range []int{0, 2 * tooLongKept} {
				got := titled(t, csvSource(t, Options{CSV: c.o, FetchBytes: size}, c.texts...))
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestCSVOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"delimiter": {Format: CSV, CSV: CSVOptions{Delimiter: '\n'}}, "quote": {Format: CSV, CSV: CSVOptions{Quote: '\r'}},
		"the same": {Format: CSV, CSV: CSVOptions{Delimiter: '"'}}, "skip": {Format: CSV, CSV: CSVOptions{SkipRows: -1}},
		"a container": {Format: CSV, Container: func(*os.File, int64) (Container, error) { return nil, nil }}, "no container": {Format: Parquet},
		"no format": {Format: 99},
	} {
		if _, err := NewSource([]string{"x"}, o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// TestCSVGoesOnAnywhere: every record can be the first of another reader, which knows the header all the same, packed or not.
func TestCSVGoesOnAnywhere(t *testing.T) {
	text := "skipped\na,b\n1,\"x\ny\"\n2,z\n\n3,\"\"\"\"\n"
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for _, content := range []string{text, packed.String()} {
		src := csvSource(t, Options{CSV: CSVOptions{SkipRows: 1}}, content)
		split := splits(t, src)[0]
		all := titled(t, src)
		var ends []int64
		r, err := src.NewReader(t.Context(), stream.ReaderContext{})
		if err != nil || r.Open(t.Context(), split) != nil {
			t.Fatal(err)
		}
		var b stream.Batch[Record]
		for r.Fetch(t.Context(), &b) == nil {
			for i := range b.Len() {
				_, _, next := b.At(i)
				ends = append(ends, next)
			}
		}
		if len(ends) != 3 || len(all) != 3 {
			t.Fatalf("%d records, %q", len(ends), all)
		}
		for i, from := range ends {
			split.Position = from
			var got []string
			for _, rec := range fetchAll(t, src, split) {
				got = append(got, string(rec.Header)+"|"+string(rec.Bytes))
			}
			if diff := cmp.Diff(all[i+1:], got); diff != "" && len(got)+len(all[i+1:]) > 0 {
				t.Errorf("from %d: %s", from, diff)
			}
		}
	}
}

// TestCSVRanges: without quotes a file is read in ranges, each of which knows the header; with them it is not.
func TestCSVRanges(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,2\n", 1000)
	quoted := csvSource(t, Options{SplitBytes: 100}, text)
	if n := len(splits(t, quoted)); n != 1 {
		t.Errorf("%d splits with quotes, want 1", n)
	}
	src := csvSource(t, Options{SplitBytes: 100, CSV: CSVOptions{NoQuotes: true}}, text)
	if n := len(splits(t, src)); n < 40 {
		t.Errorf("%d splits", n)
	}
	got := titled(t, src)
	if len(got) != 1000 {
		t.Fatalf("%d records, want 1000", len(got))
	}
	for _, g := range got {
		if g != "a,b|1,2" {
			t.Fatal(g)
		}
	}
}

func TestCSVRecordsThatAreTooLong(t *testing.T) {
	long := strings.Repeat("x\n", 50_000)
	src := csvSource(t, Options{MaxRecordBytes: 10_000, FetchBytes: 2 * tooLongKept}, "a\n1\n\""+long+"\"\n2\n")
	got := titled(t, src)
	if len(got) != 3 || got[0] != "a|1" || !strings.Contains(got[1], ErrTooLong.Error()) || got[2] != "a|2" {
		t.Errorf("%.200q", got)
	}
	header := csvSource(t, Options{MaxRecordBytes: 10_000, FetchBytes: 2 * tooLongKept}, "\""+long+"\"\n2\n")
	for _, err := range header.Records(t.Context()) {
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("%v, want the header to be too long", err)
		}
	}
}

// TestCSVCutsAsTheStandardLibrary: what encoding/csv writes comes back as as many records, with the same bytes.
func TestCSVCutsAsTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching(`[a,"\n é]{0,5}`), 2, 3), 1, 8).Draw(rt, "records")
		var all bytes.Buffer
		var want []string
		for _, c := range cells {
			var one bytes.Buffer
			w := csv.NewWriter(&one)
			w.UseCRLF = rapid.Bool().Draw(rt, "crlf")
			if err := w.Write(c); err != nil {
				rt.Fatal(err)
			}
			w.Flush()
			all.Write(one.Bytes())
			want = append(want, strings.TrimSuffix(strings.TrimSuffix(one.String(), "\n"), "\r"))
		}
		var got []string
		l := newLines(oneByte{&all}, 1, make([]byte, 3), 1<<20, quoteEnder{',', '"'})
		for {
			ln, ok := l.ready()
			if ok {
				got = append(got, string(ln.text))
				continue
			}
			if _, err := l.more(); errors.Is(err, io.EOF) {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// oneByte reads a byte at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// TestCounter: records that span lines count once, in whatever pieces they come.
func TestCounter(t *testing.T) {
	c, err := Options{Format: CSV, CSV: CSVOptions{SkipRows: 1}}.Counter()
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, b := range []byte("report\na\n1\n\"x\ny\"\n2\n3") {
		last = c.Add([]byte{b})
	}
	if last != 3 {
		t.Errorf("%d records, want 3", last)
	}
	if _, err := (Options{MaxRecordBytes: -1}).Counter(); err == nil {
		t.Error("want an error")
	}
}
