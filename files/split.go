package files

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/stream"
)

// Durable forms are JSON objects that say what they are and which version.
const (
	splitKind      = "files.split"
	enumeratorKind = "files.enumerator"
	version        = 1
)

// part is what a split says: which bytes of which file.
type part struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	Path    string `json:"path"`
	Quoted  string `json:"quoted,omitzero"` // the path as a Go literal, where it is no UTF-8 and JSON cannot hold it as it is
	Start   int64  `json:"start"`
	End     int64  `json:"end"`             // exclusive, for uncompressed files; 0 is the end of the file
	Size    int64  `json:"size"`            // of the file when it was listed, in bytes as stored
	Packed  string `json:"packed,omitzero"` // "gzip", "zstd"
}

func (p part) id() string {
	path := p.Path
	if !utf8.ValidString(path) {
		path = strconv.Quote(path) // ids are text, and two of them are never the same
	}
	if p.Start == 0 && p.End == 0 {
		return path
	}
	return fmt.Sprintf("%s[%d:%d]", path, p.Start, p.End)
}

func (p part) split() (stream.Split, error) {
	p.Kind, p.Version = splitKind, version
	if !utf8.ValidString(p.Path) {
		p.Quoted = strconv.Quote(p.Path)
	}
	data, err := json.Marshal(p)
	return stream.Split{ID: p.id(), Data: data, Position: p.Start}, err
}

func parsePart(data []byte) (part, error) {
	var p part
	if err := decode(data, splitKind, &p); err != nil {
		return p, err
	}
	if p.Quoted != "" {
		path, err := strconv.Unquote(p.Quoted)
		if err != nil {
			return p, fmt.Errorf("%s: path %s: %w", splitKind, p.Quoted, err)
		}
		p.Path = path
	}
	if p.Start < 0 || p.End < 0 || p.End > 0 && p.End < p.Start {
		return p, fmt.Errorf("%s: impossible range [%d:%d] of %q", splitKind, p.Start, p.End, p.Path)
	}
	return p, nil
}

// decode reads one durable form after checking its kind and version.
func decode(data []byte, kind string, into any) error {
	var head struct {
		Kind    string `json:"kind"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%s: not readable: %w", kind, err)
	}
	if head.Kind != kind || head.Version != version {
		return fmt.Errorf("expected %s version %d, got %q version %d: it was written by another source or a newer release",
			kind, version, head.Kind, head.Version)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: not readable: %w", kind, err)
	}
	return nil
}
