package store

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// fuzzBytes bounds the input of a fuzz test that goes through the disk.
const fuzzBytes = 1 << 20

// goldenFile is a file of the folders that TestGolden opens.
func goldenFile(f *testing.F, format, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", format, name))
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzFolder opens folders whose log is any bytes: it is read, or refused with the name of the file.
func FuzzFolder(f *testing.F) {
	for _, format := range []string{"format-1", "format-2"} {
		logs, err := filepath.Glob(filepath.Join("testdata", format, "log-*"))
		if err != nil || len(logs) == 0 {
			f.Fatalf("%s: %d logs, %v", format, len(logs), err)
		}
		for _, path := range logs {
			f.Add(goldenFile(f, format, filepath.Base(path)))
		}
	}
	huge := binary.LittleEndian.AppendUint32([]byte(walMagic), 1<<30)
	f.Add(append(huge, "\x00\x00\x00\x00\x01{}"...))
	f.Add([]byte(walMagic)[:5])
	f.Fuzz(func(t *testing.T, log []byte) {
		if len(log) > fuzzBytes {
			return
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), log, 0o644); err != nil {
			t.Fatal(err)
		}
		var s *Store
		var err error
		hostile.Proportional(t, len(log), 64, 1<<20, func() { s, err = Open(Options{Dir: dir, Clock: clock.NewManual(clock.Start)}) })
		if err != nil {
			if !strings.Contains(err.Error(), segmentName(1)) {
				t.Errorf("the error names no file: %v", err)
			}
			return
		}
		look(t, s)
		closeStore(t, s)
	})
}

// payloads cuts the frames of a file apart. What follows the whole ones is left out.
func payloads(f *testing.F, file []byte) (out [][]byte) {
	for at := magicBytes; at+headerBytes <= len(file); {
		n := int(binary.LittleEndian.Uint32(file[at:]))
		if n == 0 || at+headerBytes+n > len(file) {
			f.Fatalf("a golden file is damaged at byte %d", at)
		}
		out = append(out, file[at+headerBytes:at+headerBytes+n])
		at += headerBytes + (n+7)/8*8
	}
	return out
}

// packed is frames for a fuzz test, which makes the checksums itself: each is its length, two bytes, and its payload.
func packed(frames [][]byte) (out []byte) {
	for _, p := range frames {
		out = append(binary.LittleEndian.AppendUint16(out, uint16(len(p))), p...)
	}
	return out
}

func unpacked(b []byte) (frames [][]byte) {
	for len(b) > 2 {
		n := min(int(binary.LittleEndian.Uint16(b)), len(b)-2)
		if n > 0 {
			frames = append(frames, append(make([]byte, 0, n), b[2:2+n]...)) // as aligned as a frame that was read
		}
		b = b[2+n:]
	}
	return frames
}

// FuzzReplay replays any frames, whose checksums are right: the fuzz test of a writer that is another.
func FuzzReplay(f *testing.F) {
	for _, file := range [][2]string{{"format-1", "log-000002"}, {"format-2", "log-000002"}} {
		f.Add(packed(payloads(f, goldenFile(f, file[0], file[1]))))
	}
	f.Add(packed(filledLog(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := inMemory(t)
		s.assigned = 0
		r := &replay{store: s, instances: map[int64]*Table{}, streams: map[int64]*Stream{}, end: -1}
		hostile.Proportional(t, len(b), 256, 1<<20, func() {
			for _, payload := range unpacked(b) {
				if r.frame(payload) != nil {
					return
				}
			}
			s.version.Store(s.assigned)
			look(t, s)
		})
	})
}

// filledLog is the frames of a store that everything has been done to.
func filledLog(f *testing.F) [][]byte {
	t := &testing.T{}
	o := Options{Dir: f.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	fill(t, s)
	changed := makeTable(t, s, dataset.Table("changed"), keyed(0))
	plain(t, changed, mutation{id: 2, v: "plain"})
	mutate(t, changed, mutation{1, "one", "A"}, mutation{1, "late", "9"}, mutation{4, "", "FFFFFFFFFFFFFFFF/1"})
	if _, err := changed.Write(Rows{Info: changed.Info(), Remove: []Range{{0, 1}}}); err != nil {
		f.Fatal(err)
	}
	if err := s.PutJob(Job{Name: "p:US.j", Record: []byte(`{}`)}); err != nil {
		f.Fatal(err)
	}
	abandon(t, s)
	b, err := os.ReadFile(filepath.Join(o.Dir, segmentName(1)))
	if err != nil {
		f.Fatal(err)
	}
	return payloads(f, b)
}

// FuzzCheckpoint reads any checkpoint and any frames of a data file, whose checksums are right.
func FuzzCheckpoint(f *testing.F) {
	for _, format := range []string{"format-1", "format-2"} {
		checkpoints, err := filepath.Glob(filepath.Join("testdata", format, "checkpoint-*"))
		if err != nil || len(checkpoints) != 1 {
			f.Fatalf("%s: %v, %v", format, checkpoints, err)
		}
		data, err := filepath.Glob(filepath.Join("testdata", format, "data-*"))
		if err != nil || len(data) != 1 {
			f.Fatalf("%s: %v, %v", format, data, err)
		}
		f.Add(payloads(f, goldenFile(f, format, filepath.Base(checkpoints[0])))[0], packed(payloads(f, goldenFile(f, format, filepath.Base(data[0])))))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, state, data []byte) {
		if len(state) == 0 || len(state) > fuzzBytes || len(data) > fuzzBytes {
			return
		}
		file := func(name, magic string, frames ...[]byte) {
			b := []byte(magic)
			for _, payload := range frames {
				var start int
				b, start = beginFrame(b)
				b = endFrame(append(b, payload...), start)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		file(checkpointName(1), checkpointMagic, state)
		file(dataName(1), dataMagic, unpacked(data)...)
		s := inMemory(t)
		s.options.Dir, s.assigned = dir, 0
		r := &replay{store: s, instances: map[int64]*Table{}, streams: map[int64]*Stream{}, end: -1}
		hostile.Proportional(t, len(state)+len(data), 256, 1<<20, func() {
			if err := r.checkpoint(1); err != nil {
				if !strings.Contains(err.Error(), checkpointName(1)) && !strings.Contains(err.Error(), dataName(1)) && !os.IsNotExist(err) {
					t.Errorf("the error names no file: %v", err)
				}
				return
			}
			s.version.Store(s.assigned)
			look(t, s)
		})
	})
}

// look reads everything that a store holds.
func look(t *testing.T, s *Store) {
	for _, p := range s.Projects() {
		for _, d := range s.Datasets(p) {
			tables, err := s.Tables(d.Ref)
			if err != nil {
				t.Fatal(err)
			}
			for _, tab := range tables {
				tab.Live()
				tab.Stats()
				tab.Merging()
				for _, read := range []func() (*Snapshot, error){tab.Snapshot, func() (*Snapshot, error) { return tab.Query(s.Version()) }, func() (*Snapshot, error) { return tab.Base(0) }} {
					snapshot, err := read()
					if err != nil {
						continue // a table in a mode that keeps no rows
					}
					for _, part := range snapshot.Parts() {
						toJSON(t, part.Batch)
					}
				}
			}
		}
	}
	s.capture()
}
