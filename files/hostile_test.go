package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/stream"
)

// A short limit must neither take bytes of the neighbours into what is kept of a long record, nor reach beyond the buffer.
func TestRecordTooLongForAShortLimit(t *testing.T) {
	long := strings.Repeat("y", 30)
	data := strings.Repeat(long+"\n1\n", 1000)
	for _, fetch := range []int{0, 1} {
		src := open(t, Options{MaxRecordBytes: 10, FetchBytes: fetch}, write(t, "a", []byte(data)))
		recs := fetchAll(t, src, splits(t, src)[0])
		if len(recs) != 2000 {
			t.Fatalf("got %d records, want 2000", len(recs))
		}
		for i, r := range recs {
			if i%2 == 0 && (!errors.Is(r.Err, ErrTooLong) || !strings.HasPrefix(long, string(r.Bytes))) || i%2 == 1 && string(r.Bytes) != "1" {
				t.Fatalf("record %d is %q, error %v", i, r.Bytes, r.Err)
			}
		}
	}
}

// lastErr reads the first split to its end or its error.
func lastErr(t *testing.T, src *Source, after func(b *stream.Batch[Record])) error {
	t.Helper()
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close says again what Fetch has said: %v", err)
		}
	}()
	if err := r.Open(t.Context(), splits(t, src)[0]); err != nil {
		return err
	}
	var b stream.Batch[Record]
	for {
		if err := r.Fetch(t.Context(), &b); err != nil {
			return err
		}
		after(&b)
	}
}

func isLasting(err error) bool {
	said, ok := errors.AsType[interface {
		error
		Permanent() bool
	}](err)
	return ok && said.Permanent()
}

// An engine that tries again writes everything before the damage once more: what will not mend must say so.
func TestDamagedFilesAreNotTriedAgain(t *testing.T) {
	packed := packGzip(numbered(100_000))
	flipped := bytes.Clone(packed)
	flipped[len(flipped)/2] ^= 0xff
	for name, data := range map[string][]byte{
		"cut in the middle": packed[:len(packed)/2], "cut in the trailer": packed[:len(packed)-4], "cut in the head": packed[:5],
		"a flipped bit": flipped, "something behind": append(bytes.Clone(packed), "garbage"...),
	} {
		err := lastErr(t, open(t, Options{}, write(t, "a.gz", data)), func(*stream.Batch[Record]) {})
		if err == nil || errors.Is(err, io.EOF) || !isLasting(err) || !strings.Contains(err.Error(), "damaged or cut short") {
			t.Errorf("%s: error %v, want one that lasts", name, err)
		}
	}
}

func TestFileCutWhileItIsRead(t *testing.T) {
	p := write(t, "a", numbered(100_000))
	err := lastErr(t, open(t, Options{FetchBytes: 9000}, p), func(*stream.Batch[Record]) {
		if err := os.Truncate(p, 50_000); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || errors.Is(err, io.EOF) || !isLasting(err) || !strings.Contains(err.Error(), "was cut while it was read") {
		t.Errorf("error %v", err)
	}
}

func TestFileThatGrowsIsReadAsItWasListed(t *testing.T) {
	data := numbered(1000)
	p := write(t, "a", data)
	src := open(t, Options{SplitBytes: 500}, p)
	all := splits(t, src)
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var got []got
	for _, s := range all {
		got = append(got, readSplit(t, src, s)...)
	}
	if want := wantLines(data); !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d", len(got), len(want))
	}
}

func TestStandardInputIsReadOnce(t *testing.T) {
	src := open(t, Options{}, Stdin).WithStdin(strings.NewReader("1\n2\n"))
	s := splits(t, src)[0]
	if recs := fetchAll(t, src, s); len(recs) != 2 {
		t.Fatalf("got %d records", len(recs))
	}
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer r.Close()
	if err := r.Open(t.Context(), s); err == nil || !isLasting(err) || !strings.Contains(err.Error(), "a second time") {
		t.Errorf("the second reader: error %v, want a refusal: it would find nothing, and call that success", err)
	}
}

func TestFilesThatCanBeReadOnlyOnceAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // its devices have no names in the file system
	}
	src := open(t, Options{}, os.DevNull)
	if _, err := src.NewEnumerator(t.Context(), stream.EnumeratorContext{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("error %v", err)
	}
}

// Names of files are bytes; what is not UTF-8 must survive durable forms, which are JSON.
func TestNamesThatAreNotUTF8(t *testing.T) {
	want := []string{"a\xff", "a\xfe", "a"}
	ids := map[string]bool{}
	for _, path := range want {
		s, err := part{Path: path, Size: 1}.split()
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePart(s.Data)
		if err != nil || p.Path != path {
			t.Errorf("%q came back as %q, %v", path, p.Path, err)
		}
		ids[strings.ToValidUTF8(s.ID, "?")] = true
	}
	if len(ids) != len(want) {
		t.Errorf("splits share ids: %v", ids)
	}
	if _, err := parsePart([]byte(`{"kind":"files.split","version":1,"path":"a","quoted":"\"a"}`)); err == nil {
		t.Error("half a literal was taken")
	}
}

// A folder that cannot be looked into may hold what is to be read.
func TestPatternsThatCannotBeFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a/x.ndjson", "b/x.ndjson", "b/y.ndjson", "file"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o755), os.WriteFile(filepath.Join(dir, n), []byte("{}\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"*/x.ndjson": {"a/x.ndjson", "b/x.ndjson"}, "b/*": {"b/x.ndjson", "b/y.ndjson"}, "*/*": {"a/x.ndjson", "b/x.ndjson", "b/y.ndjson"},
		"[ab]/?.ndjson": {"a/x.ndjson", "b/x.ndjson", "b/y.ndjson"}, "*/none": nil, "none/*": nil, "*/*/*": nil,
	} {
		got, err := glob(filepath.Join(dir, pattern))
		for i := range got {
			got[i] = filepath.ToSlash(strings.TrimPrefix(got[i], dir+string(filepath.Separator)))
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", pattern, got, err, want)
		}
	}
	if runtime.GOOS == "windows" {
		return // no loops there without privileges
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if got, err := glob(filepath.Join(dir, "*/x.ndjson")); err == nil {
		t.Errorf("a folder that cannot be looked into was passed over: %v", got)
	}
}

func TestReads(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.ndjson")
	if err := errors.Join(os.WriteFile(in, []byte("{}\n"), 0o644), os.Link(in, filepath.Join(dir, "alias"))); err != nil {
		t.Fatal(err)
	}
	src := open(t, Options{}, filepath.Join(dir, "*.ndjson"))
	for path, want := range map[string]bool{
		in: true, filepath.Join(dir, "dead.ndjson"): true, filepath.Join(dir, "alias"): true,
		filepath.Join(dir, "sub", "..", "in.ndjson"): true, filepath.Join(dir, "dead.txt"): false,
		filepath.Join(dir, "sub", "dead.ndjson"): false,
	} {
		if got := src.Reads(path); got != want {
			t.Errorf("Reads(%s) is %v", path, got)
		}
	}
	f, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piped := open(t, Options{}, Stdin).WithStdin(f)
	if !piped.Reads(in) || piped.Reads(filepath.Join(dir, "dead.ndjson")) {
		t.Error("standard input that is a file is not known as that file")
	}
}
