package audit

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

// Effect is what a call did to rows.
type Effect string

const (
	None    Effect = "none"
	Applied Effect = "applied" // rows are in a created stream, and become visible by a flush or a commit
	Visible Effect = "visible" // rows have become visible
	Removed Effect = "removed" // rows have been taken away
)

// Fate is what became of an answer.
type Fate string

const (
	Pending  Fate = "pending"  // the call is not over
	Sent     Fate = "sent"     // handed to the connection
	Withheld Fate = "withheld" // a fault rule kept it back
	Cut      Fate = "cut"      // the connection was gone
	Lost     Fate = "lost"     // the process ended before it was sent, or before that was written down
)

// Record is one event. The JSON form is a line of the exported log.
type Record struct {
	Seq  int64     `json:"seq"`  // from 1; numbers are missing only where a process was killed
	Time time.Time `json:"time"` // of the service's clock
	Wall time.Time `json:"wall"` // of the machine's
	RPC  string    `json:"rpc"`  // AppendRows, tables.insert, …
	// Conn is the client's end of the connection.
	Conn      string `json:"conn,omitempty"`
	Principal string `json:"principal,omitempty"`
	TraceID   string `json:"traceId,omitempty"`
	// Request is a digest of the request's bytes.
	Request Digest `json:"request,omitempty"`
	Table   string `json:"table,omitempty"` // projects/p/datasets/d/tables/t
	Stream  string `json:"stream,omitempty"`
	Object  string `json:"object,omitempty"` // gs://bucket/object
	// Instance tells tables of one name apart.
	Instance int64  `json:"instance,omitempty"`
	Offset   *int64 `json:"offset,omitempty"` // as asked for
	// At is the offset in the created stream that the first row of an append got.
	At *int64 `json:"at,omitempty"`
	// Shown are the rows of created streams that a flush or a commit made visible, in the order of their ids.
	Shown []Shown `json:"shown,omitempty"`
	Rows  int64   `json:"rows,omitempty"` // in the request
	// Digests are of the rows' bytes, in order; nil where only counts are kept.
	Digests Digests `json:"digests,omitempty"`
	Effect  Effect  `json:"effect"`
	// Job is the job that wrote, p:LOC.id; Objects are what it was going to read, gs://bucket/object#generation.
	Job     string   `json:"job,omitempty"`
	Objects []string `json:"objects,omitempty"`
	// First is the id of the first row that became visible or was removed, Count how many did, with consecutive ids. Rows that
	// are only applied have no ids yet.
	First int64 `json:"first,omitempty"`
	Count int64 `json:"count,omitempty"`
	// Removed are the rows that changes took away: those they replaced or deleted, and of First and Count those that are not
	// visible, because they are deletes or because a greater change of their key was there.
	Removed []Range `json:"removed,omitempty"`
	// Before and After are the table's versions.
	Before int64 `json:"before,omitempty"`
	After  int64 `json:"after,omitempty"`

	Code   string   `json:"code,omitempty"`   // of the answer: OK, INVALID_ARGUMENT, …, or an HTTP code
	Detail string   `json:"detail,omitempty"` // the answer's message
	Fate   Fate     `json:"fate"`
	Rules  []string `json:"rules,omitempty"` // fault rules that fired
	// Note says what there is to say about an event that is no call: a window drawn, a recovery.
	Note string `json:"note,omitempty"`

	done bool // nothing will change any more
}

// Shown is a run of a created stream's rows, by offset, that became visible.
type Shown struct {
	Stream string `json:"stream"` // its name
	Offset int64  `json:"offset"` // of the first
	Count  int64  `json:"count"`
}

// Acked reports whether the client was told of a success.
func (r *Record) Acked() bool { return r.Fate == Sent && (r.Code == "OK" || r.Code == "200") }

// Digest is a 64-bit hash, spelt in hexadecimal.
type Digest uint64

// MarshalText writes 16 hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(d)), nil }

// UnmarshalText reads hexadecimal digits.
func (d *Digest) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%x", (*uint64)(d))
	return err
}

// Digests are hashes in a row, spelt as base64 of eight bytes each, least significant first.
type Digests []uint64

// MarshalText writes base64.
func (d Digests) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 8*len(d))
	for _, v := range d {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads base64.
func (d *Digests) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || len(b)%8 != 0 {
		return fmt.Errorf("digests are not base64 of eight bytes each")
	}
	*d = make(Digests, len(b)/8)
	for i := range *d {
		(*d)[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return nil
}
