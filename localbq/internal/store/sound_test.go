package store

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// withLog is a folder whose log holds frames, with checksums that are right.
func withLog(t *testing.T, frames ...[]byte) Options {
	t.Helper()
	b := []byte(walMagic)
	for _, payload := range frames {
		var start int
		b, start = beginFrame(b)
		b = endFrame(append(b, payload...), start)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, segmentName(1)), b, 0o644); err != nil {
		t.Fatal(err)
	}
	return Options{Dir: dir, Clock: clock.NewManual(clock.Start)}
}

func catalogFrame(json string) []byte { return append([]byte{frameCatalog}, json...) }

// TestUnsoundLog opens logs that no store has written, whole as their checksums say: an error names the file and the byte.
func TestUnsoundLog(t *testing.T) {
	const made = `{"op":"put-dataset","version":1,"dataset":{"ref":{"Project":"p","Dataset":"d"}}}`
	put := func(definition string) []byte {
		return catalogFrame(`{"op":"put-table","version":2,"ref":{"Project":"p","Dataset":"d","Table":"t"},"instance":2,"info":` + definition + `}`)
	}
	table := put(`{"schema":{"fields":[{"name":"n","type":2},{"name":"s","type":6}]}}`)
	stream := func(op, of string) []byte {
		return catalogFrame(`{"op":"` + op + `","version":3,"instance":2,"streams":[` + of + `]}`)
	}
	rows := func(r rowsRecord) []byte { r.instance, r.version = 2, 4; return r.append(nil) }
	three := appendBatch(nil, numbered(0, 3))
	none := binary.AppendUvarint(nil, 1<<29) // as many rows, without columns
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   string
	}{
		{"a change of nothing", [][]byte{catalogFrame(`{"op":"put-dataset"}`)}, `"put-dataset" of nothing`},
		{"an operation of another time", [][]byte{catalogFrame(`{"op":"explode"}`)}, `"explode" of nothing`},
		{"a job of nothing", [][]byte{catalogFrame(`{"op":"put-job"}`)}, `"put-job" of nothing`},
		{"a version behind all time", [][]byte{catalogFrame(`{"op":"put-dataset","version":9223372036854775807,"dataset":{}}`)}, "at version 9223372036854775807"},
		{"a table without a definition", [][]byte{catalogFrame(made), put("{}")}, "definition 0 is empty"},
		{"a column of nothing", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[null]}}`)}, "column 0 is null"},
		{"a column of no type", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[{"name":"n"}]}}`)}, "is unknown"},
		{"10,000 nested messages: columns", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[` + strings.Repeat(`{"name":"n","type":16,"fields":[`, 9_000/2) + strings.Repeat(`]}`, 9_000/2) + `]}}`)}, "nested more than 64 levels deep"},
		{"a key that is no column", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[{"name":"n","type":2}]},"primaryKey":["x"]}`)}, `column "x" cannot be a key`},
		{"a definition of another number", [][]byte{catalogFrame(made), put(`{"number":7,"schema":{"fields":[{"name":"n","type":2}]}}`)}, "definition 7 of table p:d.t"},
		{"a stream of no kind", [][]byte{catalogFrame(made), table, stream(opCreateStream, `{"key":3}`)}, "of kind StreamKind(0)"},
		{"a flush beyond the rows", [][]byte{catalogFrame(made), table, stream(opCreateStream, `{"key":3,"kind":3}`), stream(opFlushStream, `{"key":3,"shown":1}`)}, "shows 1 rows"},
		{"rows beyond their stream", [][]byte{catalogFrame(made), table, stream(opCreateStream, `{"key":3,"kind":3}`), rows(rowsRecord{stream: 3, offset: 9, count: 3, batches: three, batchCount: 1})}, "lie at 9"},
		{"another number of rows", [][]byte{catalogFrame(made), table, rows(rowsRecord{count: 9, batches: three, batchCount: 1})}, "3 are there, and 9"},
		{"fewer rows than none", [][]byte{catalogFrame(made), table, rows(rowsRecord{count: -1})}, "-1 by their own account"},
		{"more rows to remove than any table has", [][]byte{catalogFrame(made), table, rows(rowsRecord{remove: []Range{{0, 1 << 62}}})}, "not in ascending order"},
		{"rows to remove that are not there", [][]byte{catalogFrame(made), table, rows(rowsRecord{remove: []Range{{0, 1 << 40}}})}, "concurrent update"},
		{"batches without end", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[]}}`), rows(rowsRecord{batchCount: 1<<32 - 1})}, "encoded batch is damaged"},
		{"rows without columns", [][]byte{catalogFrame(made), put(`{"schema":{"fields":[]}}`), rows(rowsRecord{count: 1 << 29, batches: none, batchCount: 1})}, "encoded batch is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := withLog(t, c.frames...)
			hostile.Allocates(t, 16<<20, func() {
				_, err := Open(o)
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(o.Dir, segmentName(1))+": frame at byte ") {
					t.Errorf("got %v, want %q and the frame's file and byte", err, c.want)
				}
			})
		})
	}
}

// TestHugeFrame opens logs that say a frame is longer than the file, or the memory: nothing is taken on their word.
func TestHugeFrame(t *testing.T) {
	t.Run("a 1 GiB length prefix", func(t *testing.T) {
		o := withLog(t, catalogFrame(`{"op":"put-dataset","version":1,"dataset":{"ref":{"Project":"p","Dataset":"d"}}}`))
		path := filepath.Join(o.Dir, segmentName(1))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		torn := binary.LittleEndian.AppendUint32(bytes.Clone(b), 1<<30)
		if err := os.WriteFile(path, append(torn, make([]byte, 100)...), 0o644); err != nil {
			t.Fatal(err)
		}
		hostile.Allocates(t, 16<<20, func() {
			s := open(t, o) // what a killed process leaves of a large write
			if got := s.Recovery(); got.CutBytes != 104 || got.Changes != 1 {
				t.Errorf("%+v, want one change, and 104 bytes cut off", got)
			}
			closeStore(t, s)
		})
	})
	t.Run("a log of nothing but beginnings of frames", func(t *testing.T) {
		const size = 16 << 20
		b := append([]byte(walMagic), make([]byte, 16)...)
		for len(b) < size { // each as long as the rest of the file, with a head that tells nothing
			b = binary.LittleEndian.AppendUint32(b, uint32(size-len(b)-headerBytes))
			b = append(b, 1, 1, 1, 1, frameRows, rowsOfTable, 0, 0, 0, 0, 0, 0)
		}
		o := withLog(t)
		path := filepath.Join(o.Dir, segmentName(1))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		hostile.Allocates(t, 12*size, func() {
			if _, err := Open(o); err == nil || !strings.Contains(err.Error(), path+" is damaged at byte 8") {
				t.Errorf("got %v, want the damaged byte", err)
			}
		})
	})
}

// TestDamagedLengthBeforeChanges changes the length of a frame with nothing but changes behind it: they were acknowledged, and
// the log is not cut.
func TestDamagedLengthBeforeChanges(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	changed := makeTable(t, s, dataset.Table("changed"), keyed(0))
	before := s.log.size
	plain(t, changed, mutation{id: 2, v: "plain"})
	mutate(t, changed, mutation{1, "one", "A"})
	mutate(t, changed, mutation{1, "two", "B"})
	abandon(t, s)
	path := filepath.Join(o.Dir, segmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[before+2] ^= 0x80
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "not by a process that was killed") {
		t.Errorf("got %v, want a refusal to cut the log", err)
	}
}

// TestUnsoundCheckpoint reads checkpoints that no store has written.
func TestUnsoundCheckpoint(t *testing.T) {
	const infos = `"infos":[{"schema":{"fields":[{"name":"n","type":2},{"name":"s","type":6}]}}]`
	tableOf := func(rest string) string {
		return `{"datasets":[{"dataset":{"ref":{"Project":"p","Dataset":"d"}},"tables":[{` + rest + `}]}]}`
	}
	chunk := func(rest string) string { return tableOf(infos + `,"rows":3,"chunks":[{` + rest + `}]`) }
	const extent = `"extents":[{"file":1,"offset":8,"rows":3}]`
	for _, c := range []struct{ name, state, want string }{
		{"a dataset of nothing", `{"datasets":[{}]}`, "a dataset of nothing"},
		{"a version before all time", `{"version":-1}`, "of version -1"},
		{"a table without definitions", tableOf(`"instance":1`), "a table without a definition"},
		{"a definition of nothing", tableOf(`"infos":[null]`), "definition 0 of a table is missing"},
		{"more dead than rows", tableOf(infos + `,"rows":1,"dead":2`), "1 rows, 2 of them gone"},
		{"rows that went before they were", tableOf(infos + `,"rows":1,"gone":[{"First":-5,"Count":2}]`), "2 rows from -5 are gone"},
		{"a chunk of another definition", chunk(`"number":-1`), "a chunk is shaped by definition -1"},
		{"a chunk without rows", chunk(`"marks":[[1,3]]`), "a chunk of 0 rows"},
		{"a mark beyond the rows", chunk(`"marks":[[1,1152921504606846976]],` + extent), "had 1152921504606846976 at version 1"},
		{"a chunk behind the rows", chunk(`"first":1,` + extent), "a chunk of 3 rows from 1, between 0 and 3"},
		{"a death behind the rows", chunk(`"deaths":"/////wcB",` + extent), "the list of removed rows is damaged"},
		{"an extent that is nowhere", chunk(`"extents":[{"file":1,"offset":-8,"rows":3}]`), "data-000001"},
		{"an extent of other rows", chunk(`"extents":[{"file":1,"offset":8,"rows":4}]`), "3 rows, expected 4"},
		{"a stream of no kind", tableOf(infos + `,"streams":[{"id":"x","kind":9}]`), "write stream x: StreamKind(9)"},
		{"a stream with more visible than it holds", tableOf(infos + `,"streams":[{"id":"x","kind":3,"cursor":2,"end":1}]`), "1 rows, 0 before the last append and 2 visible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name, magic string, payload []byte) {
				b, start := beginFrame([]byte(magic))
				if err := os.WriteFile(filepath.Join(dir, name), endFrame(append(b, payload...), start), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			file(checkpointName(1), checkpointMagic, []byte(c.state))
			file(dataName(1), dataMagic, appendBatch(nil, numbered(0, 3)))
			if err := os.WriteFile(filepath.Join(dir, segmentName(1)), []byte(walMagic), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := (manifest{Format: manifestFormat, Checkpoint: 1, Log: 1}).write(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Options{Dir: dir, Clock: clock.NewManual(clock.Start)})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, checkpointName(1))) {
				t.Errorf("got %v, want %q and the checkpoint's file", err, c.want)
			}
		})
	}
}
