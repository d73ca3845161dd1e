package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/stream"
)

// DeadLetters returns the failure policy that appends failed records to the file at path, which it creates when the first
// one fails, readable by its owner alone since records may be private. Each is one line, a JSON object (see [DeadLetter]). A
// record is on disk once the handler's Flush has returned. Several lanes, and several processes, may append to one file.
//
// Whether the file can be written is found out here, where nothing has been done yet. Its folder is made for that.
func DeadLetters(path string) (stream.FailurePolicy, error) {
	if path == "" {
		return nil, errors.New("dead letters: the file name is empty")
	}
	if err := appendable(path); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return deadLetters{path}, nil
}

// appendable finds out whether a file can be appended to, and leaves no trace of it.
func appendable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return creatable(filepath.Dir(path))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: what is written to it cannot be known to be safe", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func creatable(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".dead-letters-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

type deadLetters struct{ path string }

// DeadLetter is one line of a dead-letter file.
type DeadLetter struct {
	Time        time.Time `json:"time"`
	Job         string    `json:"job,omitzero"`
	Connector   string    `json:"connector"`
	Destination string    `json:"destination"` // "unresolved" for a record that could not be routed
	File        string    `json:"file"`        // or topic, or read stream: where the record came from
	Line        int64     `json:"line,omitzero"`
	Position    int64     `json:"position"`
	Reason      string    `json:"reason"`

	// Exactly one of these is set: the record as it came in, or, from sources that cannot give that, the encoded row.
	Record      *string `json:"record,omitempty"`        // valid UTF-8
	RecordBytes []byte  `json:"record_base64,omitempty"` // anything else
	RowBytes    []byte  `json:"row_base64,omitempty"`
}

// NewHandler makes the handler of one lane.
func (d deadLetters) NewHandler(_ context.Context, hc stream.HandlerContext) (stream.FailureHandler, error) {
	return &deadLetterHandler{path: d.path, job: hc.Job}, nil
}

type deadLetterHandler struct {
	path  string
	job   string
	file  *os.File // nil until the first record
	dirty bool
}

func (h *deadLetterHandler) Handle(_ context.Context, f *stream.FailedRecord) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // the record is to be read by people
	if err := enc.Encode(h.letter(f)); err != nil {
		return fmt.Errorf("dead letter of %s: %w", f.At, err)
	}
	if err := h.open(); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	h.dirty = true
	// One write of a file opened for appending is not cut by another's.
	if _, err := h.file.Write(line.Bytes()); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

func (h *deadLetterHandler) letter(f *stream.FailedRecord) DeadLetter {
	l := DeadLetter{Time: time.Now().UTC(), Job: h.job, Connector: f.Connector, Destination: f.Destination,
		File: f.At.Name, Line: f.At.Line, Position: f.At.Row, Reason: f.Reason}
	switch {
	case f.Original == nil:
		l.RowBytes = f.Row
	case utf8.Valid(f.Original):
		l.Record = new(string(f.Original))
	default:
		l.RecordBytes = f.Original
	}
	return l
}

func (h *deadLetterHandler) open() error {
	if h.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	h.file = f
	return endLine(f)
}

// endLine ends a line that a crash cut, so that it stays the only damaged one.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

// Flush has everything handled so far on disk when it returns nil.
func (h *deadLetterHandler) Flush(context.Context) error {
	if !h.dirty {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	h.dirty = false
	return nil
}

func (h *deadLetterHandler) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}
