package storageread

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/stream"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func sampleState() *state {
	expires := time.Date(2026, 8, 12, 18, 0, 0, 123456789, time.UTC)
	return &state{planned: true, session: "projects/p/locations/us/sessions/x", expires: expires, bytes: 1 << 40, pending: []pendingSplit{
		{Split{Stream: "s0", Schema: textRows, Expires: expires}, 42},
		{Split{Stream: "s1", Schema: strings.Replace(textRows, `"c"`, `"other"`, 1)}, 0},
		{Split{Stream: "s2", Schema: textRows, Expires: expires}, stream.MaxPosition},
	}}
}

// golden compares bytes with the hex dump in the file. Durable bytes are read for ever: a file is only ever added.
func golden(t *testing.T, file string, got []byte) []byte {
	t.Helper()
	path := "testdata/" + file
	if *rewrite {
		if err := os.WriteFile(path, []byte(hex.Dump(got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), hex.Dump(got)); diff != "" {
		t.Error(diff)
	}
	return got
}

func TestDurableBytes(t *testing.T) {
	t.Parallel()
	s := sampleState()
	decoded, err := decodeState(golden(t, "state_v1.hex", s.encode()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, decoded, cmp.AllowUnexported(state{}, pendingSplit{})); diff != "" {
		t.Error(diff)
	}
	split := s.pending[0].at(42)
	golden(t, "split_v1.hex", split.Data)
	got, err := returned(split)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.pending[0], got, cmp.AllowUnexported(pendingSplit{})); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("x", 200<<10)
	s := &state{pending: []pendingSplit{{Split{Stream: "s0", Schema: wide}, 42}, {Split{Stream: "s1", Schema: wide}, 0}}}
	b := s.encode()
	if len(b) > 201<<10 {
		t.Errorf("%d bytes: the schema is there more than once", len(b))
	}
	for _, s := range []*state{s, {}, {planned: true}} {
		got, err := decodeState(s.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got, cmp.AllowUnexported(state{}, pendingSplit{})); diff != "" {
			t.Error("SRC-27", diff)
		}
	}
}

func TestDurableBytesRefused(t *testing.T) {
	t.Parallel()
	version := func(b []byte, v byte) []byte {
		b = bytes.Clone(b)
		b[2] = v
		return b
	}
	good, split := sampleState().encode(), sampleState().pending[0].at(0)
	for name, b := range map[string][]byte{
		"SRC-27 version 9":         version(good, 9),
		"version 0":                version(good, 0),
		"empty":                    {},
		"another kind":             split.Data,
		"a byte too many":          append(bytes.Clone(good), 0),
		"SRC-27 negative position": (&state{pending: []pendingSplit{{Split{Stream: "s"}, -1}}}).encode(),
	} {
		_, err := decodeState(b)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.HasSuffix(name, "9") && !strings.Contains(err.Error(), "version 9: this program reads versions 1 to 1") {
			t.Error(err)
		}
	}
	for n := range good {
		if _, err := decodeState(good[:n]); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(good))
		}
	}
	for n := range split.Data {
		if _, err := decodeSplit(stream.Split{Data: split.Data[:n]}); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(split.Data))
		}
	}
	for _, position := range []int64{-1, stream.MaxPosition + 1} {
		split.Position = position
		if _, err := decodeSplit(split); err == nil {
			t.Errorf("position %d is accepted", position)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(sampleState().encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			return
		}
		again, err := decodeState(s.encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(state{}, pendingSplit{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(sampleState().pending[0].at(0).Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSplit(stream.Split{Data: b})
		if err != nil {
			return
		}
		if again, err := decodeSplit(s.at(0)); err != nil || again != s {
			t.Fatalf("%v became %v: %v", s, again, err)
		}
	})
}
