package storageread

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// textRows is the schema of the rows below: one REQUIRED column of text.
const textRows = `{"type":"record","name":"__root__","fields":[{"name":"c","type":"string"}]}`

// sized is the row "r<i>", blown up to size bytes.
func sized(i, size int) []byte {
	name := fmt.Sprintf("r%d", i)
	prefix := 1
	if size > 64 { // a length of 64 or more takes two bytes
		prefix = 2
	}
	b := avroBytes(nil, name+strings.Repeat(".", size-prefix-len(name)))
	if len(b) != size {
		panic(fmt.Sprintf("row of %d bytes, want %d", len(b), size))
	}
	return b
}

// nameOf is the name of a row made by sized.
func nameOf(r *row.Row) string { return string(bytes.TrimRight(r.Values[0].Bytes, ".")) }

type testBlock struct {
	data []byte
	rows int64
}

func blockOf(rows ...[]byte) testBlock {
	return testBlock{slices.Concat(rows...), int64(len(rows))}
}

// drain makes batches until the split ends.
func drain(t *testing.T, c *cursor, blocks []testBlock) (batches [][]string) {
	t.Helper()
	var batch []string
	c.begin()
	for {
		next, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		switch next {
		case giveRow:
			batch = append(batch, nameOf(c.decoder.Row()))
			c.gave()
			continue
		case needBlock:
			if len(blocks) > 0 {
				if err := c.load(blocks[0].data, blocks[0].rows); err != nil {
					t.Fatal(err)
				}
				blocks = blocks[1:]
				continue
			}
			fallthrough
		case splitEnded:
			return append(batches, batch)
		case batchFull:
			batches = append(batches, batch)
			batch = nil
			c.begin()
		}
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	ten := func(from, to int) (b testBlock) {
		for i := from; i < to; i++ {
			b.data = append(b.data, sized(i, 5)...)
			b.rows++
		}
		return b
	}
	for _, c := range []struct {
		name             string
		maxRows, maxByte int
		stop             int64
		blocks           []testBlock
		want             string
	}{
		{"SRC-30 the cap cuts a block", 3, 1000, noStop, []testBlock{ten(0, 10)}, "[[r0 r1 r2] [r3 r4 r5] [r6 r7 r8] [r9]]"},
		{"SRC-31 the cap stops at the last row", 2, 1000, noStop, []testBlock{ten(0, 2)}, "[[r0 r1] []]"},
		{"SRC-32 one batch", 100, 1000, noStop, []testBlock{ten(0, 2)}, "[[r0 r1]]"},
		{"SRC-33 the third row is deferred", 100, 100, noStop,
			[]testBlock{blockOf(sized(0, 40), sized(1, 40), sized(2, 40))}, "[[r0 r1] [r2]]"},
		{"SRC-34 the target exactly", 100, 100, noStop,
			[]testBlock{blockOf(sized(0, 60), sized(1, 40), sized(2, 3))}, "[[r0 r1] [r2]]"},
		{"SRC-35 a row above the target", 100, 100, noStop,
			[]testBlock{blockOf(sized(0, 150), sized(1, 10), sized(2, 10))}, "[[r0] [r1 r2]]"},
		{"SRC-36 a row above the target comes last", 100, 100, noStop,
			[]testBlock{blockOf(sized(0, 10), sized(1, 150))}, "[[r0] [r1]]"},
		{"SRC-39 a block without rows is not the end", 100, 1000, noStop,
			[]testBlock{{}, ten(0, 2)}, "[[r0 r1]]"},
		{"a batch spans blocks", 100, 1000, noStop, []testBlock{ten(0, 2), ten(2, 3)}, "[[r0 r1 r2]]"},
		{"SRC-84 the limit ends a split", 3, 1000, 5, []testBlock{ten(0, 10)}, "[[r0 r1 r2] [r3 r4]]"},
		{"the limit comes before the byte rule", 100, 100, 1,
			[]testBlock{blockOf(sized(0, 60), sized(1, 60))}, "[[r0]]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cur := &cursor{decoder: mustDecoder(t, textRows, nil), maxRows: c.maxRows, maxBytes: c.maxByte, stop: c.stop}
			got := drain(t, cur, c.blocks)
			if fmt.Sprint(got) != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
			if n := int64(len(slices.Concat(got...))); cur.delivered != n {
				t.Errorf("delivered %d of %d rows", cur.delivered, n)
			}
		})
	}
}

// SRC-33: a deferred row is decoded once: the block does not move when it is taken up again.
func TestDeferredRowIsDecodedOnce(t *testing.T) {
	t.Parallel()
	cur := &cursor{decoder: mustDecoder(t, textRows, nil), maxRows: 10, maxBytes: 10, stop: noStop}
	b := blockOf(sized(0, 10), sized(1, 10), sized(2, 10))
	if err := cur.load(b.data, b.rows); err != nil {
		t.Fatal(err)
	}
	cur.begin()
	cur.next()
	cur.gave()
	if next, _ := cur.next(); next != batchFull || len(cur.block) != 10 || cur.delivered != 1 {
		t.Fatalf("action %d with %d bytes left at %d", next, len(cur.block), cur.delivered)
	}
	cur.begin()
	if next, _ := cur.next(); next != giveRow || len(cur.block) != 10 || nameOf(cur.decoder.Row()) != "r1" {
		t.Errorf("action %d with %d bytes left", next, len(cur.block))
	}
}

func TestCursorRefusesBlocks(t *testing.T) {
	t.Parallel()
	two := slices.Concat(sized(0, 5), sized(1, 5))
	for _, c := range []struct {
		name  string
		block testBlock
	}{
		{"SRC-40 three rows in the bytes of two", testBlock{two, 3}},
		{"SRC-40 bytes after the last row", testBlock{append(two[:10:10], 0), 2}},
		{"bytes without rows", testBlock{two, 0}},
		{"rows below zero", testBlock{two, -1}},
		{"rows below zero without bytes", testBlock{nil, -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cur := &cursor{decoder: mustDecoder(t, textRows, nil), maxRows: 10, maxBytes: 100, stop: noStop}
			err := cur.load(c.block.data, c.block.rows)
			cur.begin()
			for range 5 {
				if err != nil {
					break
				}
				var next action
				if next, err = cur.next(); next == giveRow {
					cur.gave()
				}
			}
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindDecode {
				t.Errorf("got %v, want D-TYPE", err)
			}
		})
	}
}
