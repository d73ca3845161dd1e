package storagewrite

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// What a buffered writer remembers of a destination, and what it promises:
//
//	'S' 1, uvarint length and bytes of the stream's name, uvarint next offset, varint checkpoint
//	'F' 1, uvarint length and bytes of the stream's name, uvarint flush offset, varint lane
//
// The destination of a state is stream.State's own. The lane is for whoever looks into a checkpoint.
const (
	stateKind         = 'S'
	promiseKind       = 'F'
	stateVersion byte = 1
)

// streamState is how far a stream was written at a checkpoint.
type streamState struct {
	dst        table.Destination
	stream     string
	next       int64
	checkpoint int64
}

func (s streamState) state() stream.State {
	b := appendName([]byte{stateKind, stateVersion}, s.stream)
	b = binary.AppendUvarint(b, uint64(s.next))
	b = binary.AppendVarint(b, s.checkpoint)
	return stream.State{Destination: s.dst.String(), Data: b}
}

// parseState reads a state. Its stream must be one of its destination.
func parseState(s stream.State) (streamState, error) {
	dst, err := table.ParseDestination(s.Destination)
	if err != nil {
		return streamState{}, fmt.Errorf("state of a writer: %w", err)
	}
	r, err := openRecord(s.Data, stateKind)
	if err != nil {
		return streamState{}, fmt.Errorf("state of the writer for %s: %w", dst, err)
	}
	out := streamState{dst: dst, stream: r.name(), next: r.count(), checkpoint: r.number()}
	if err := r.end(); err != nil {
		return streamState{}, fmt.Errorf("state of the writer for %s: %w", dst, err)
	}
	if !strings.HasPrefix(out.stream, dst.Path()+"/streams/") {
		return streamState{}, fmt.Errorf("state of the writer for %s: %q is not a stream of that table", dst, out.stream)
	}
	return out, nil
}

// promise is that a stream holds rows up to an offset, included, which may be made visible.
type promise struct {
	stream string
	offset int64
	lane   int
}

func (p promise) committable() stream.Committable {
	b := appendName([]byte{promiseKind, stateVersion}, p.stream)
	b = binary.AppendUvarint(b, uint64(p.offset))
	b = binary.AppendVarint(b, int64(p.lane))
	return stream.Committable{Key: p.stream, Data: b}
}

// parsePromise reads a committable.
func parsePromise(c stream.Committable) (promise, error) {
	r, err := openRecord(c.Data, promiseKind)
	if err != nil {
		return promise{}, fmt.Errorf("committable: %w", err)
	}
	p := promise{stream: r.name(), offset: r.count(), lane: int(r.number())}
	if err := r.end(); err != nil {
		return promise{}, fmt.Errorf("committable: %w", err)
	}
	if _, err := streamTable(p.stream); err != nil {
		return promise{}, fmt.Errorf("committable: %w", err)
	}
	return p, nil
}

// streamTable is the table that a stream's name says it belongs to.
func streamTable(name string) (table.Destination, error) {
	part := strings.Split(name, "/")
	if len(part) == 8 && part[0] == "projects" && part[2] == "datasets" && part[4] == "tables" && part[6] == "streams" && part[7] != "" {
		dst := table.Destination{Project: part[1], Dataset: part[3], Table: part[5]}
		if dst.Validate() == nil {
			return dst, nil
		}
	}
	return table.Destination{}, fmt.Errorf("%q is not the name of a stream: expected projects/…/datasets/…/tables/…/streams/…", name)
}

func appendName(b []byte, name string) []byte {
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

var errDamaged = errors.New("it is damaged")

// record reads the parts of a state or a promise in order. The first thing that is wrong stays.
type record struct {
	rest []byte
	err  error
}

func openRecord(data []byte, kind byte) (*record, error) {
	if len(data) < 2 || data[0] != kind {
		return nil, errDamaged
	}
	if data[1] != stateVersion {
		return nil, fmt.Errorf("version %d is unknown: expected %d; a newer millrace may read it", data[1], stateVersion)
	}
	return &record{rest: data[2:]}, nil
}

func (r *record) count() int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || int64(n) < 0 {
		r.err, r.rest = cmp.Or(r.err, errDamaged), nil
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *record) number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.err, r.rest = cmp.Or(r.err, errDamaged), nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *record) name() string {
	n := r.count()
	if n > int64(len(r.rest)) {
		r.err, r.rest = cmp.Or(r.err, errDamaged), nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *record) end() error {
	if r.err == nil && len(r.rest) > 0 {
		return errDamaged
	}
	return r.err
}
