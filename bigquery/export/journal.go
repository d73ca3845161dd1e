package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"
)

// The notes of a read are lines: a checksum in eight hexadecimal digits, a space, and a JSON object. The first is a header, each
// other a mark. A line that is cut or does not match its checksum was being written when the process ended, and ends the notes.

const notesVersion = 1

// header says what is read.
type header struct {
	Version int       `json:"millraceRead"`
	Facts   []Fact    `json:"facts"`
	Lanes   int       `json:"lanes"`
	Session []byte    `json:"session"`
	Expires time.Time `json:"expires,omitzero"`
}

// mark is a moment that reading can go on from.
type mark struct {
	File     int    `json:"file"`
	Length   int64  `json:"length"`   // of the file
	Rows     int64  `json:"rows"`     // of the whole read
	Bytes    int64  `json:"bytes"`    // of the files before
	Complete bool   `json:"complete"` // the file is, and may have its name already
	Order    order  `json:"order"`
	Note     string `json:"note,omitempty"` // of the container
}

// notes are what a file of them holds.
type notes struct {
	header header
	last   mark     // zero: nothing was written
	note   []string // of the marks of the last one's file
	size   int64    // of what is whole
}

func noteLine(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(text), text), nil
}

// readNotes reads notes. ok is false where there is no whole header: then nothing had begun.
func readNotes(data []byte) (n *notes, ok bool, err error) {
	n = &notes{}
	for first := true; ; first = false {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		text, good := lineText(line)
		if !whole || !good {
			return n, !first, nil
		}
		data = rest
		n.size += int64(len(line)) + 1
		if first {
			err = json.Unmarshal(text, &n.header)
			if err == nil && n.header.Version != notesVersion {
				err = fmt.Errorf("version %d: this program reads version %d", n.header.Version, notesVersion)
			}
		} else {
			var m mark
			if err = json.Unmarshal(text, &m); err == nil {
				n.take(m)
			}
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func lineText(line []byte) (text []byte, good bool) {
	sum, text, ok := bytes.Cut(line, []byte(" "))
	return text, ok && string(sum) == fmt.Sprintf("%08x", crc32.ChecksumIEEE(text))
}

func (n *notes) take(m mark) {
	if m.File != n.last.File {
		n.note = nil
	}
	n.note = append(n.note, m.Note)
	n.last = m
}

// differences are the facts that are not those of the notes.
func (h *header) differences(now []Fact) []Change {
	was := map[string]string{}
	for _, f := range h.Facts {
		was[f.Name] = f.Value
	}
	var all []Change
	for _, f := range now {
		if was[f.Name] != f.Value {
			all = append(all, Change{f.Name, was[f.Name], f.Value})
		}
		delete(was, f.Name)
	}
	for _, f := range h.Facts {
		if _, left := was[f.Name]; left && f.Value != "" {
			all = append(all, Change{f.Name, f.Value, ""})
		}
	}
	return all
}
