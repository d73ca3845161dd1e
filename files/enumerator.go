package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-dev/millrace/stream"
)

// enumerator hands out the parts of the files that were there when the job started.
type enumerator struct {
	queue []stream.Split
	size  int64

	ordinal bool // positions count the records of a range, as opposed to bytes of the file
}

// enumeratorState is the durable form.
type enumeratorState struct {
	Kind    string         `json:"kind"`
	Version int            `json:"version"`
	Size    int64          `json:"size"`
	Queue   []stream.Split `json:"queue"`
}

func (s *Source) newEnumerator(paths []string) (*enumerator, error) {
	e := &enumerator{ordinal: s.options.Format == Avro}
	var errs []error
	for _, path := range paths {
		if err := e.add(path, s.options); err != nil {
			errs = append(errs, s.atPath(s.pathOf(path), err))
		}
	}
	return e, errors.Join(errs...)
}

func (e *enumerator) add(path string, o Options) error {
	if path == Stdin {
		return e.push(part{Path: Stdin})
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return unfitFile("%s is a folder: name files, or a pattern such as %s/*.ndjson", path, path)
	case !info.Mode().IsRegular():
		// Opening a pipe could wait for ever, and what was read from it would be lost to a second look and to a restart.
		return unfitFile("%s is no regular file, and could be read only once: feed it to standard input, and name that %q", path, Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	packed, err := sniff(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if packed != "" && o.Container != nil {
		return unfitFile("%s is packed with %s: expected a file of the format %s, which packs its own parts", path, packed, o.Format)
	}
	e.size += info.Size()
	whole := part{Path: path, Size: info.Size(), Packed: packed}
	if packed != "" || info.Size() <= o.SplitBytes || !o.ranges() {
		return e.push(whole)
	}
	for start := int64(0); start < info.Size(); start += o.SplitBytes {
		p := whole
		p.Start, p.End = start, min(start+o.SplitBytes, info.Size())
		if err := e.push(p); err != nil {
			return err
		}
	}
	return nil
}

func (e *enumerator) push(p part) error {
	s, err := p.split()
	if e.ordinal {
		s.Position = 0
	}
	e.queue = append(e.queue, s)
	return err
}

func restoreEnumerator(data []byte) (*enumerator, error) {
	var s enumeratorState
	if err := decode(data, enumeratorKind, &s); err != nil {
		return nil, err
	}
	return &enumerator{queue: s.Queue, size: s.Size}, nil
}

// Next hands out the head of the queue.
func (e *enumerator) Next(int) (stream.Split, error) {
	if len(e.queue) == 0 {
		return stream.Split{}, io.EOF
	}
	s := e.queue[0]
	e.queue = e.queue[1:]
	return s, nil
}

// Return puts splits back behind the queue.
func (e *enumerator) Return(_ int, splits []stream.Split) { e.queue = append(e.queue, splits...) }

// Snapshot is the queue.
func (e *enumerator) Snapshot() ([]byte, error) {
	return json.Marshal(enumeratorState{Kind: enumeratorKind, Version: version, Size: e.size, Queue: e.queue})
}

// Size is the size of all files as stored, and known unless standard input is read.
func (e *enumerator) Size() (int64, bool) { return e.size, e.size > 0 }

// Close has nothing to free.
func (e *enumerator) Close() error { return nil }
