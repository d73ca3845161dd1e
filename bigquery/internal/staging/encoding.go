package staging

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// File is a file of rows under way. It is for one goroutine.
type File interface {
	// Write adds a row. A *row.Error is the row's own fault: it is not in the file, which goes on. Any other error ends the file.
	Write(row []byte) error
	// Size is the number of bytes that have been written so far to what is below.
	Size() int64
	// Close writes what is left. It does not close what is below.
	Close() error
}

// Encoding makes the files of a format. It may be used from many goroutines.
type Encoding interface {
	Format() Format
	// Extension is what names of such files end with, the dot included.
	Extension() string
	// Check says what of a table the format has no place for, as *row.Error values.
	Check(p *Plan) error
	// NewFile begins a file.
	NewFile(w io.Writer, p *Plan) (File, error)
}

// Encodings that this package has. Parquet's is in the package parquetfile, so that who stages nothing in it does not link its
// library.
var (
	AvroFiles Encoding = avroFiles{}
	JSONFiles Encoding = jsonFiles{}
	CSVFiles  Encoding = csvFiles{}
)

// ParquetEncoder makes Parquet's Encoding. It is a value so that who does not ask for Parquet does not link what writes it.
type ParquetEncoder interface {
	// Files are files that write a row group once it has so many bytes of values; until then they lie in memory and count for
	// nothing towards a file's size.
	Files(rowGroupBytes int, uncompressed bool) Encoding
}

type avroFiles struct{}

func (avroFiles) Format() Format    { return Avro }
func (avroFiles) Extension() string { return ".avro" }
func (avroFiles) Check(*Plan) error { return nil }

func (avroFiles) NewFile(w io.Writer, p *Plan) (File, error) { return NewAvroFile(w, p) }

// CustomFiles is a format that somebody else writes.
type CustomFiles struct {
	// Suffix is what names of files end with: ".orc".
	Suffix string
	// Open begins a file of rows of a table. Rows are messages of that descriptor. What Write returns as *row.Error is the row's
	// own fault.
	Open func(w io.Writer, s *table.Schema, d *descriptorpb.DescriptorProto) (File, error)
	// Configure completes what a load job is told; it begins with the schema alone.
	Configure func(*Load)
}

// Validate reports what cannot be right.
func (c *CustomFiles) Validate() error {
	var faults []error
	if c.Open == nil {
		faults = append(faults, errors.New("Open is nil: expected a function that begins a file"))
	}
	if c.Configure == nil {
		faults = append(faults, errors.New("Configure is nil: expected a function that sets at least SourceFormat of load jobs"))
	}
	if !suffix(c.Suffix) {
		faults = append(faults, fmt.Errorf("Suffix is %q: expected a dot and up to 30 letters, digits, dots, hyphens and underscores", c.Suffix))
	}
	return errors.Join(faults...)
}

// suffix keeps what would be a pattern, or another folder, out of names of objects.
func suffix(s string) bool {
	return len(s) >= 2 && len(s) <= 31 && s[0] == '.' && strings.Trim(s,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Format is loadplan's name for any such format.
func (c *CustomFiles) Format() Format { return Custom }

// Extension is Suffix.
func (c *CustomFiles) Extension() string { return c.Suffix }

// Check leaves everything to Open.
func (c *CustomFiles) Check(*Plan) error { return nil }

// NewFile calls Open.
func (c *CustomFiles) NewFile(w io.Writer, p *Plan) (File, error) {
	return c.Open(w, p.Schema, p.Descriptor)
}

// Load is what a load job is told about such files.
func (c *CustomFiles) Load(s *table.Schema) Load {
	l := Load{Schema: s}
	c.Configure(&l)
	return l
}
