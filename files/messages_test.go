package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// delimited are messages as protodelim writes them, and what is to be read of them.
func delimited(t testing.TB, texts ...string) (data []byte, want []got) {
	t.Helper()
	var out bytes.Buffer
	for _, text := range texts {
		at := int64(out.Len())
		n, err := protodelim.MarshalTo(&out, wrapperspb.String(text))
		if err != nil {
			t.Fatal(err)
		}
		message := out.Bytes()[at:]
		_, head := binary.Uvarint(message)
		want = append(want, got{string(message[head:n]), at, at + int64(n)})
	}
	return out.Bytes(), want
}

// texts are n texts of different lengths, some empty, some longer than a short buffer.
func texts(n int) (all []string) {
	for i := range n {
		text := ""
		if i%5 > 0 {
			text = fmt.Sprint(i, strings.Repeat("x", i*i%300))
		}
		all = append(all, text)
	}
	return all
}

func TestMessagesOfAFile(t *testing.T) {
	data, want := delimited(t, texts(500)...)
	for _, fetch := range []int{1, 100, 0} {
		o := Options{Format: Protobuf, FetchBytes: fetch, SplitBytes: 100}
		for name, stored := range map[string][]byte{"a.binpb": data, "a.binpb.gz": packGzip(data), "a.binpb.zst": packZstd(t, data)} {
			if d := cmp.Diff(want, readAll(t, open(t, o, write(t, name, stored)))); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
	if all := readAll(t, open(t, Options{Format: Protobuf}, write(t, "empty", nil))); len(all) != 0 {
		t.Errorf("an empty file has %d messages", len(all))
	}
}

func TestMessagesOfStandardInput(t *testing.T) {
	data, want := delimited(t, texts(300)...)
	src := open(t, Options{Format: Protobuf, FetchBytes: 1, FetchRecords: 7}, Stdin).WithStdin(iotest.OneByteReader(bytes.NewReader(data)))
	if d := cmp.Diff(want, readAll(t, src)); d != "" {
		t.Error(d)
	}
}

func TestReadingMessagesGoesOnAfterAnyOfThem(t *testing.T) {
	data, want := delimited(t, texts(60)...)
	for name, stored := range map[string][]byte{"a.binpb": data, "a.binpb.gz": packGzip(data)} {
		src := open(t, Options{Format: Protobuf, FetchRecords: 3}, write(t, name, stored))
		s := splits(t, src)[0]
		for i, g := range want {
			s.Position = g.Next
			rest := readSplit(t, src, s)
			if d := cmp.Diff(want[i+1:], rest, cmp.Transformer("none", func(g []got) []got { return append([]got{}, g...) })); d != "" && len(want[i+1:])+len(rest) > 0 {
				t.Fatalf("%s after position %d: %s", name, g.Next, d)
			}
		}
	}
}

func TestMessageSourceKeepsItsPromises(t *testing.T) {
	var all, paths []string
	for _, n := range []int{200, 100} {
		data, want := delimited(t, texts(n)...)
		paths = append(paths, write(t, "a.binpb", data))
		for _, g := range want {
			all = append(all, g.Text)
		}
	}
	streamtest.TestSource(t, streamtest.SourceHarness[Record]{
		New: func(streamtest.TB) stream.Source[Record] {
			return open(t, Options{Format: Protobuf, FetchRecords: 11}, paths...)
		},
		Want: all,
		Text: func(r stream.Record[Record]) string { return string(r.Value.Bytes) },
	})
}

// A message that is too long is a record of its own, and the one behind it is found.
func TestMessageTooLong(t *testing.T) {
	long := strings.Repeat("y", 9000)
	data, want := delimited(t, "a", long, "b", long)
	for _, in := range []func() *Source{
		func() *Source {
			return open(t, Options{Format: Protobuf, MaxRecordBytes: 100, FetchBytes: 1}, write(t, "a", data))
		},
		func() *Source {
			return open(t, Options{Format: Protobuf, MaxRecordBytes: 100}, Stdin).WithStdin(iotest.HalfReader(bytes.NewReader(data)))
		},
	} {
		src := in()
		var all []got
		err := lastErr(t, src, func(b *stream.Batch[Record]) {
			for i := range b.Len() {
				recs, at, next := b.At(i)
				r := recs[0].Value
				if long := next-at > 100; long != errors.Is(r.Err, ErrTooLong) || long && len(r.Bytes) != tooLongKept {
					t.Errorf("at %d: %d bytes, error %v", at, len(r.Bytes), r.Err)
				}
				all = append(all, got{string(r.Bytes), at, next})
			}
		})
		if err != io.EOF || len(all) != 4 {
			t.Fatalf("%d messages, %v", len(all), err)
		}
		for i := range all {
			if !strings.HasPrefix(want[i].Text, all[i].Text) || all[i].At != want[i].At || all[i].Next != want[i].Next {
				t.Errorf("message %d is %v", i, all[i])
			}
		}
	}
}

func TestMessagesThatAreCut(t *testing.T) {
	data, want := delimited(t, "one", "", strings.Repeat("three", 100), "four")
	ends := map[int]bool{0: true}
	for _, g := range want {
		ends[int(g.Next)] = true
	}
	for _, limit := range []int{0, 50} {
		for cut := range len(data) {
			good := 0
			err := lastErr(t, open(t, Options{Format: Protobuf, MaxRecordBytes: limit}, write(t, "cut.binpb", data[:cut])), func(b *stream.Batch[Record]) { good += b.Len() })
			if ends[cut] {
				if err != io.EOF {
					t.Errorf("cut behind a message, at %d: %v", cut, err)
				}
				continue
			}
			said := fmt.Sprintf("cut.binpb: message %d at byte %d is cut", good+1, want[good].At)
			if err == nil || !strings.Contains(err.Error(), said) || !isLasting(err) {
				t.Errorf("cut at %d: %v, want %q in it, and lasting: %v", cut, err, said, isLasting(err))
			}
		}
	}
}

func TestMessageLengthsThatCannotBe(t *testing.T) {
	data, want := delimited(t, "one", "two")
	for _, c := range []struct{ tail, said string }{
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no length before it"},
		{"\x80\x80\x80\x80\x08", "no message has"},
		{"\xff\xff\xff\xff\x07", "is cut"}, // 2 GiB less one: not there, and not asked for
		{"{\"id\": 1}\n", "is cut"},
	} {
		path := write(t, "bad.binpb", append(bytes.Clone(data), c.tail...))
		src := open(t, Options{Format: Protobuf}, path)
		s := splits(t, src)[0]
		for _, from := range []int64{0, want[1].At} {
			s.Position = from
			err := errOf(t, src, s)
			place := fmt.Sprintf("bad.binpb: message 3 at byte %d", len(data))
			if err == nil || !strings.Contains(err.Error(), c.said) || !strings.Contains(err.Error(), place) || !isLasting(err) {
				t.Errorf("%q: %v, want %q and %q in it", c.tail, err, place, c.said)
			}
		}
	}
}

// errOf reads a split to its error.
func errOf(t *testing.T, src *Source, s stream.Split) error {
	t.Helper()
	r, _ := src.NewReader(t.Context(), stream.ReaderContext{})
	defer r.Close()
	if err := r.Open(t.Context(), s); err != nil {
		return err
	}
	var b stream.Batch[Record]
	for {
		if err := r.Fetch(t.Context(), &b); err != nil {
			return err
		}
	}
}

func TestMessagesAreNamedByTheirNumber(t *testing.T) {
	data, want := delimited(t, texts(40)...)
	for name, stored := range map[string][]byte{"a.binpb": data, "a.binpb.zst": packZstd(t, data)} {
		path := write(t, name, stored)
		i := 0
		for rec, err := range open(t, Options{Format: Protobuf}, path).Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			at := rec.At.Location()
			if number := int64(i + 1); at.Line != number || at.Row != want[i].At {
				t.Errorf("message %d is at %+v", number, at)
			}
			i++
		}
	}
}

func FuzzMessages(f *testing.F) {
	data, _ := delimited(f, texts(10)...)
	f.Add(data, 16)
	f.Add([]byte("\x80\x00\x01a\x05b"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = 1 + limit&0xff
		var want []got
		rest, damaged := data, false
		for len(rest) > 0 {
			size, n := binary.Uvarint(rest)
			if damaged = n <= 0 || size > uint64(len(rest)-n); damaged {
				break
			}
			at := int64(len(data) - len(rest))
			text := string(rest[n : n+int(size)])
			if len(text) > limit {
				text = text[:min(len(text), tooLongKept)]
			}
			want = append(want, got{text, at, at + int64(n) + int64(size)})
			rest = rest[n+int(size):]
		}
		src := open(t, Options{Format: Protobuf, FetchBytes: 1, MaxRecordBytes: limit}, Stdin).WithStdin(bytes.NewReader(data))
		var all []got
		err := lastErr(t, src, func(b *stream.Batch[Record]) {
			for i := range b.Len() {
				recs, at, next := b.At(i)
				all = append(all, got{string(recs[0].Value.Bytes), at, next})
			}
		})
		if damaged == (err == io.EOF) || err == nil {
			t.Fatalf("damaged: %v, and the end is %v", damaged, err)
		}
		if d := cmp.Diff(want, all); d != "" {
			t.Fatal(d)
		}
	})
}
