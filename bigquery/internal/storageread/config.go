package storageread

import (
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Config is what a read is made of: options that are checked and complete. It is not changed after it has been handed
// over, and may be shared.
type Config struct {
	// Table is read, unless Query is set: then its result is.
	Table table.Destination
	Query *Query
	// Views is how a view is read, by a query whose SQL the plan writes; nil refuses views. Without Query only.
	Views *Query

	// Parent is the project that owns and pays for the session.
	Parent string
	// Arrow asks for rows in Arrow, which are handed on as they are: Reader.Blocks alone takes them.
	Arrow bool
	// Columns are what the deserializer wants of the session's; nil is all.
	Columns *table.Schema
	// ReaderSchema is what rows are resolved into, instead of Columns; nil is none.
	ReaderSchema *ReaderSchema

	SelectedFields          []string
	RowRestriction          string
	Partitions              []string  // of the table, whose rows alone are read; nil is all
	SnapshotTime            time.Time // zero is now
	SamplePercentage        float64   // 0 is no sampling
	MaxStreamCount          int       // 0 leaves it to the service
	PreferredMinStreamCount int       // 0 makes no request
	StreamsPerLane          int       // asks for that many for each lane, where no count is given; 0 makes no request
	Compressed              bool      // responses travel in LZ4
	ArrowCompression        ArrowCompression
	TraceID                 string // "" is the job's name
	CreateSessionTimeout    time.Duration

	MaxRecordsPerFetch int
	MaxBytesPerFetch   int
	FetchQueue         int
	RetryMaxAttempts   int
	StallTimeout       time.Duration // 0 is for ever
	Limit              int64         // rows in all; noLimit reads everything

	Board      *Board // nil shows nothing
	Connection gcp.Connection
	Pacer      retry.Pacer

	dial dialer           // dialTo(Connection), but for tests
	now  func() time.Time // time.Now, but for tests
}

// ArrowCompression is how the buffers of Arrow batches are packed.
type ArrowCompression uint8

const (
	ArrowUncompressed ArrowCompression = iota
	ArrowLZ4
	ArrowZSTD
)

// what names the input in errors.
func (c *Config) what() string {
	if c.Query == nil {
		return c.Table.String()
	}
	return "the query " + abbreviate(c.Query.SQL)
}

// abbreviate keeps errors and logs readable.
func abbreviate(sql string) string {
	const most = 300 // runes
	if r := []rune(sql); len(r) > most {
		return string(r[:most]) + "…"
	}
	return sql
}

func (c *Config) dialer() dialer {
	if c.dial != nil {
		return c.dial
	}
	return dialTo(c.Connection)
}

func (c *Config) clock() func() time.Time {
	if c.now != nil {
		return c.now
	}
	return time.Now
}
