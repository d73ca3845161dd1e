package export

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Format is how rows lie in files.
type Format string

const (
	// NDJSON is one JSON object to a line, NULL columns left out. Interrupted or not, files hold the same bytes.
	NDJSON Format = "ndjson"
	// CSV has a header and a line for each row. NULL is nothing between the commas, an empty text is "", lists and STRUCTs are JSON.
	// Types and the difference between a text and what looks like a number are lost. Interrupted or not, files hold the same bytes.
	CSV Format = "csv"
	// Avro is the service's own blocks, neither decoded nor changed, in a container file. Where blocks end is the service's choice.
	Avro Format = "avro"
	// Arrow is the service's own record batches as a stream (Arrow specification, "IPC Streaming Format"), neither decoded nor
	// changed. Where batches end is the service's choice.
	Arrow Format = "arrow"
	// Parquet is packed with zstd and holds the Arrow schema too: it tells, among others, which texts are JSON. Interrupted or
	// not, files hold the same bytes.
	Parquet Format = "parquet"
)

// Formats are all of them.
func Formats() []Format { return []Format{Arrow, Avro, CSV, NDJSON, Parquet} }

// endings are what names of files end with, and the format that tells.
var endings = map[string]Format{
	".ndjson": NDJSON, ".jsonl": NDJSON, ".json": NDJSON, ".csv": CSV, ".avro": Avro, ".arrow": Arrow, ".arrows": Arrow, ".parquet": Parquet,
}

// FormatOf is the format that a file's name tells, if it does.
func FormatOf(name string) (f Format, ok bool) {
	name = strings.ToLower(name)
	if c, ok := compressionOf(name); ok {
		name = strings.TrimSuffix(name, c.ending())
	}
	f, ok = endings[path.Ext(name)]
	return f, ok
}

func (f Format) check() error {
	if slices.Contains(Formats(), f) {
		return nil
	}
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return fmt.Errorf("format %q: expected one of %s", string(f), strings.Join(names, ", "))
}

// inArrow says that the service is asked for Arrow.
func (f Format) inArrow() bool { return f == Arrow || f == Parquet }

// lanes are how many streams are read at once of so many at most, 0 is no limit. Decoding and packing take a processor each; passing
// on takes little, and waits for the service.
func (f Format) lanes(streams int) int {
	if f == Arrow || f == Avro {
		return max(runtime.GOMAXPROCS(0), streams)
	}
	return runtime.GOMAXPROCS(0)
}

// inText says that rows are text, which may be packed as a whole.
func (f Format) inText() bool { return f == NDJSON || f == CSV }

// compression is how text is packed.
type compression string

const (
	plain compression = ""
	gz    compression = "gzip"
	zst   compression = "zstd"
)

func (c compression) ending() string {
	switch c {
	case gz:
		return ".gz"
	case zst:
		return ".zst"
	}
	return ""
}

func compressionOf(name string) (compression, bool) {
	switch path.Ext(strings.ToLower(name)) {
	case ".gz":
		return gz, true
	case ".zst":
		return zst, true
	}
	return plain, false
}
