package loadplan

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Committable is one staged file: what a commit needs to load it, from any process and at any time. It is a value; equal ones are
// the same file delivered twice.
type Committable struct {
	// Run is the pipeline run that wrote the file, 32 lowercase hexadecimal digits. It stays what it was when another run commits
	// the file: job ids contain it.
	Run         string
	Destination table.Destination
	URI         string // of the object: gs://bucket/name
	Bytes       int64  // the object's length
	Rows        int64
	Format      Format
	Profile     string // see [Config.Profile]
	Checkpoint  Checkpoint
	// Schema is the columns of the file, as JSON of the REST form; "" where another committable of the same destination, run and
	// checkpoint says them. Whoever commits the file may know of fewer columns by then. No plan depends on it.
	Schema string
}

// Checkpoint is the checkpoint that covers a file. The zero value is none, as long as nobody stamped it; 0 is a checkpoint like any
// other.
type Checkpoint struct {
	ID  int64
	Set bool
}

// String is "checkpoint 42" or "without a checkpoint".
func (c Checkpoint) String() string {
	if !c.Set {
		return "without a checkpoint"
	}
	return fmt.Sprintf("checkpoint %d", c.ID)
}

// WithCheckpoint is c, stamped with a checkpoint.
func (c Committable) WithCheckpoint(id int64) Committable {
	c.Checkpoint = Checkpoint{ID: id, Set: true}
	return c
}

// committableVersion is the first byte of a committable, which the others depend on:
//
//	1, run, project, dataset, table, URI, int64 bytes, int64 rows, format's name, profile, 0 or 1, int64 checkpoint
//	2, the same, schema
//
// Texts are a uvarint length and UTF-8, integers 8 bytes with the highest first. There is one encoding of each committable: version 1
// is of those without a schema.
const (
	withoutSchema byte = 1
	withSchema    byte = 2
)

// MarshalBinary is the durable form. Text that is not UTF-8 has none.
func (c Committable) MarshalBinary() ([]byte, error) { return c.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns.
func (c Committable) AppendBinary(b []byte) ([]byte, error) {
	version := withoutSchema
	if c.Schema != "" {
		version = withSchema
	}
	b = append(b, version)
	if !utf8.ValidString(c.Schema) {
		return nil, fmt.Errorf("%w: schema %q is not UTF-8", ErrCommittable, c.Schema)
	}
	for _, s := range []string{c.Run, c.Destination.Project, c.Destination.Dataset, c.Destination.Table, c.URI} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%w: %q is not UTF-8", ErrCommittable, s)
		}
		b = appendText(b, s)
	}
	if _, known := parseFormat(c.Format.String()); !known || !utf8.ValidString(c.Profile) {
		return nil, fmt.Errorf("%w: format %s, profile %q", ErrCommittable, c.Format, c.Profile)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(c.Bytes))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Rows))
	b = appendText(appendText(b, c.Format.String()), c.Profile)
	if c.Checkpoint.Set {
		b = binary.BigEndian.AppendUint64(append(b, 1), uint64(c.Checkpoint.ID))
	} else {
		b = binary.BigEndian.AppendUint64(append(b, 0), 0)
	}
	if c.Schema != "" {
		b = appendText(b, c.Schema)
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// UnmarshalBinary reads what MarshalBinary returns and nothing else.
func (c *Committable) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return fmt.Errorf("%w: no bytes", ErrCommittable)
	}
	if data[0] != withoutSchema && data[0] != withSchema {
		return fmt.Errorf("%w: version %d: this program reads and writes versions %d and %d", ErrCommittable, data[0], withoutSchema, withSchema)
	}
	r := fields{rest: data[1:]}
	var out Committable
	out.Run = r.text("run")
	out.Destination = table.Destination{Project: r.text("project"), Dataset: r.text("dataset"), Table: r.text("table")}
	out.URI = r.text("URI")
	out.Bytes, out.Rows = r.integer("bytes"), r.integer("rows")
	out.Format = r.format()
	out.Profile = r.text("profile")
	out.Checkpoint = r.checkpoint()
	if data[0] == withSchema {
		if out.Schema = r.text("schema"); out.Schema == "" {
			r.fail("the schema is empty")
		}
	}
	if r.fault == "" && len(r.rest) > 0 {
		r.fail("%d bytes are left behind the last field", len(r.rest))
	}
	if r.fault != "" {
		return fmt.Errorf("%w of version %d (this program writes versions %d and %d): %s", ErrCommittable, data[0], withoutSchema, withSchema, r.fault)
	}
	*c = out
	return nil
}

// fields reads the fields of a committable in order. The first fault stays.
type fields struct {
	rest  []byte
	fault string
}

func (f *fields) fail(format string, args ...any) {
	if f.fault == "" {
		f.fault = fmt.Sprintf(format, args...)
	}
	f.rest = nil
}

func (f *fields) text(name string) string {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 || size > 1 && f.rest[size-1] == 0 || n > uint64(len(f.rest)-size) {
		f.fail("the %s is cut off", name)
		return ""
	}
	s := string(f.rest[size : size+int(n)])
	f.rest = f.rest[size+int(n):]
	if !utf8.ValidString(s) {
		f.fail("the %s is not UTF-8", name)
	}
	return s
}

func (f *fields) integer(name string) int64 {
	if len(f.rest) < 8 {
		f.fail("the count of %s is cut off", name)
		return 0
	}
	n := int64(binary.BigEndian.Uint64(f.rest))
	f.rest = f.rest[8:]
	return n
}

func (f *fields) format() Format {
	name := f.text("format")
	format, ok := parseFormat(name)
	if !ok {
		f.fail("the format %q is unknown", name)
	}
	return format
}

func (f *fields) checkpoint() Checkpoint {
	if len(f.rest) == 0 || f.rest[0] > 1 {
		f.fail("whether there is a checkpoint is cut off or neither 0 nor 1")
		return Checkpoint{}
	}
	set := f.rest[0] == 1
	f.rest = f.rest[1:]
	id := f.integer("checkpoints")
	if !set && id != 0 {
		f.fail("no checkpoint, and yet its id is %d", id)
	}
	return Checkpoint{ID: id, Set: set}
}
