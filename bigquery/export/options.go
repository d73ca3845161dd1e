package export

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Options say what is read and how it is written. The zero value is the default of each.
type Options struct {
	// Source is what is read of the input, and from which service. MaxBytesPerFetch and FetchQueue are chosen by the number of
	// lanes unless they are given.
	Source bigquery.SourceOptions
	// Format is how rows lie in files. Default: what the name of the target tells, or else NDJSON.
	Format Format
	// Keys are the names of columns in NDJSON. Default: as the table has them.
	Keys func(*table.Schema) *jsonrow.Keys
	// Lanes are how many streams are read at once at most. Default: GOMAXPROCS, and where rows are not decoded, in Arrow and Avro,
	// Source.MaxStreamCount if that is more. A read that goes on keeps the number it began with, since the order of rows depends on it.
	Lanes int
	// FileBytes is how large files become where there are many: the next one begins behind the chunk that goes beyond. Default
	// 256 MiB.
	FileBytes int64
	// Resume goes on with an unfinished read of this target. Where there is none, it begins; where there is a file that is
	// complete, nothing is left to do.
	Resume bool
	// SafeEvery is how often the place to go on from is written down, while there is something new. Default 1 s.
	SafeEvery time.Duration
	// Facts are what must be the same for a read to go on, by the names that the user knows. Default: the input and the fields of
	// Options that decide about rows, files and their order.
	Facts []Fact

	size sizes
}

// sizes say where chunks end.
type sizes struct {
	rows, bytes  int64 // of a chunk of text; bytes as the service encodes them
	group, piece int64 // rows of a row group, and of what goes to the Parquet writer at once
	groupBits    int64
}

// usual are the sizes with a number of lanes.
func usual(lanes int) sizes {
	return sizes{rows: chunkRows, bytes: chunkBytes, group: groupRows, piece: pieceRows, groupBits: 8 * groupBytes / int64(lanes+1)}
}

// Fact is something that must not change between the parts of an interrupted read.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

const (
	defaultFileBytes = 256 << 20
	defaultSafeEvery = time.Second
	receivedBytes    = 8 << 20 // received ahead, of all lanes
)

// resolve fills in defaults and reports every fault at once.
func (o Options) resolve(from bigquery.Input, t target) (Options, error) {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	o.Format = cmp.Or(o.Format, t.format, NDJSON)
	faults = append(faults, o.Format.check())
	if t.compression != plain && !o.Format.inText() {
		add("%q ends with %s, and %s is packed inside: leave the ending out", t.typed, t.compression.ending(), o.Format)
	}
	if o.Keys != nil && o.Format != NDJSON {
		add("Keys go with %s only, and the format is %s", NDJSON, o.Format)
	}
	if o.Lanes < 0 {
		add("Lanes must be positive: %d", o.Lanes)
	}
	if o.FileBytes < 0 {
		add("FileBytes must be positive: %d", o.FileBytes)
	}
	if o.FileBytes > 0 && !t.many {
		add("FileBytes is %d, and %q is one file: name many with a * in the name, or a folder", o.FileBytes, t.typed)
	}
	if o.SafeEvery < 0 {
		add("SafeEvery must be positive: %v", o.SafeEvery)
	}
	if o.Lanes == 0 {
		o.Lanes = o.Format.lanes(o.Source.MaxStreamCount)
	}
	if o.Lanes > 0 && o.Source.MaxBytesPerFetch == 0 && o.Source.FetchQueue == 0 {
		o.Source.FetchQueue = 1
		o.Source.MaxBytesPerFetch = max(64<<10, receivedBytes/o.Lanes)
	}
	o.FileBytes = cmp.Or(o.FileBytes, defaultFileBytes)
	o.SafeEvery = cmp.Or(o.SafeEvery, defaultSafeEvery)
	if o.Facts == nil {
		o.Facts = o.facts(from)
	}
	return o, errors.Join(faults...)
}

// facts are those of programs, by the names of fields.
func (o *Options) facts(from bigquery.Input) []Fact {
	s := &o.Source
	all := []Fact{{"input", inputText(from)}, {"Format", string(o.Format)}, {"SelectedFields", strings.Join(s.SelectedFields, ",")},
		{"RowRestriction", s.RowRestriction}, {"ReaderSchema", s.ReaderSchema}, {"Limit", strconv.FormatInt(s.Limit, 10)},
		{"SamplePercentage", fmt.Sprint(s.SamplePercentage)}, {"MaxStreamCount", strconv.Itoa(s.MaxStreamCount)},
		{"FileBytes", strconv.FormatInt(o.FileBytes, 10)}, {"SnapshotTime", ""}}
	if !s.SnapshotTime.IsZero() {
		all[len(all)-1].Value = s.SnapshotTime.UTC().Format(time.RFC3339Nano)
	}
	return all
}

func inputText(from bigquery.Input) string {
	if t, ok := from.Table(); ok {
		return t.String()
	}
	project, sql, _ := from.Query()
	return project + ": " + sql
}
