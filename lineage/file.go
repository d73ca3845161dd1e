package lineage

import (
	"context"
	"fmt"
	"io"
	"os"
)

// file appends events to a file, one a line.
type file struct {
	path string
	f    *os.File // nil before the first event, and after a failed one
}

func (t *file) send(_ context.Context, body []byte) error {
	line := make([]byte, 0, len(body)+2)
	if t.f == nil {
		torn, err := t.open()
		if err != nil {
			return final{err}
		}
		if torn {
			line = append(line, '\n')
		}
	}
	line = append(append(line, body...), '\n')
	if _, err := t.f.Write(line); err != nil {
		return fmt.Errorf("lineage file: %w", t.drop(err))
	}
	return nil
}

// open opens the file and reports whether its last line has no end: a process was killed while it wrote.
func (t *file) open() (torn bool, err error) {
	f, err := os.OpenFile(t.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return false, fmt.Errorf("lineage file: %w", err)
	}
	t.f = f
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil && err != io.EOF {
		return false, fmt.Errorf("lineage file: %w", t.drop(err))
	}
	return last[0] != '\n', nil
}

func (t *file) drop(err error) error {
	t.f.Close()
	t.f = nil
	return err
}

func (t *file) close() error {
	if t.f == nil {
		return nil
	}
	if err := t.f.Close(); err != nil {
		return fmt.Errorf("lineage file: %w", err)
	}
	return nil
}
