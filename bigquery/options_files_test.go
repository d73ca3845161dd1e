package bigquery

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/stream"
)

var staged = FileLoadOptions{StagingPath: "gs://b/p"}

// fileSink makes a sink with those options.
func fileSink(o FileLoadOptions, c Connection) (*Sink[[]byte], error) {
	return NewSink(To[[]byte](tableT), eventRows{}, SinkOptions{Method: MethodFileLoads, FileLoads: o, Connection: c})
}

// TestFileLoadOptions sets one option, or two, and wants all of the phrases in the error, or none.
func TestFileLoadOptions(t *testing.T) {
	with := func(set func(*FileLoadOptions)) FileLoadOptions {
		o := staged
		set(&o)
		return o
	}
	path := func(p string) FileLoadOptions { return FileLoadOptions{StagingPath: p} }
	type o = FileLoadOptions
	for _, c := range []struct {
		name    string
		options FileLoadOptions
		want    []string
	}{
		{"FL-1 a slash at the end", path("gs://b/p/"), nil},
		{"FL-1 a bucket alone", path("gs://b"), nil},
		{"FL-1 scheme in capitals", path("GS://b/p"), []string{`FileLoads.StagingPath is "GS://b/p"`, "gs://bucket"}},
		{"FL-1 another scheme", path("s3://b"), []string{`FileLoads.StagingPath is "s3://b"`}},
		{"FL-1 no bucket", path("gs://"), []string{"names no bucket"}},
		{"FL-1 no bucket and a slash", path("gs:///p"), []string{"names no bucket"}},
		{"FL-1 a wildcard", path("gs://b/x*"), []string{`FileLoads.StagingPath is "gs://b/x*"`}},
		{"FL-1 newline", path("gs://b/x\ny"), []string{`"gs://b/x\ny"`}},
		{"FL-1 NUL", path("gs://b/x\x00y"), []string{"control characters"}},
		{"FL-1 not UTF-8", path("gs://b/x\xffy"), []string{"not UTF-8"}},
		{"FL-1 a question mark", path("gs://b/x?generation=1"), []string{"? # [ ]"}},
		{"FL-2 nothing", o{}, []string{"FileLoads.StagingPath is required"}},
		{"FL-2 two faults at once", o{MaxOpenDestinations: -1, MaxConcurrentDestinations: 65}, []string{"StagingPath is required", "MaxOpenDestinations must be positive: -1", "MaxConcurrentDestinations must be at most 64: 65"}},
		{"FL-3 compression of Avro", with(func(o *o) { o.ParquetCompression = ParquetZSTD }), []string{"FileLoads.ParquetCompression is only for FormatParquet"}},
		{"FL-3 Parquet packed", with(func(o *o) {
			o.StagingFormat, o.Parquet, o.ParquetCompression = FormatParquet, parquetfile.Encoder{}, ParquetZSTD
		}), nil},
		{"FL-3 Parquet as it comes", with(func(o *o) { o.StagingFormat, o.Parquet = FormatParquet, parquetfile.Encoder{} }), nil},
		{"Parquet without what writes it", with(func(o *o) { o.StagingFormat = FormatParquet }), []string{"FileLoads.Parquet is nil", "bigquery/parquetstaging"}},
		{"custom without a writer", with(func(o *o) { o.StagingFormat = FormatCustom }), []string{"FileLoads.Custom is nil"}},
		{"a writer without custom", with(func(o *o) { o.Custom = &CustomFormat{} }), []string{"FileLoads.Custom is only for FormatCustom"}},
		{"custom by halves", with(func(o *o) { o.StagingFormat, o.Custom = FormatCustom, &CustomFormat{Suffix: "*"} }), []string{"Open is nil", "Configure is nil", `Suffix is "*"`}},
		{"FL-4 fewer pending than open", with(func(o *o) { o.MaxPendingFiles = 15 }), []string{"FileLoads.MaxPendingFiles must be >= FileLoads.MaxOpenDestinations: 15 < 16"}},
		{"FL-4 as many", with(func(o *o) { o.MaxPendingFiles = 16 }), nil},
		{"FL-5 too many at once", with(func(o *o) { o.MaxConcurrentCheckpointFinalizations, o.MaxConcurrentDestinations = 9, 65 }), []string{"Finalizations must be at most 8: 9", "Destinations must be at most 64: 65"}},
		{"FL-5 the most", with(func(o *o) { o.MaxConcurrentCheckpointFinalizations, o.MaxConcurrentDestinations = 8, 64 }), nil},
		{"FL-6 longest wait below the first", with(func(o *o) { o.LoadJobPollMaxBackoff = 500 * time.Millisecond }), []string{"LoadJobPollMaxBackoff must be >= FileLoads.LoadJobPollInitialBackoff: 500ms < 1s"}},
		{"FL-6 half a millisecond", with(func(o *o) { o.LoadJobPollInitialBackoff = 500 * time.Microsecond }), []string{"LoadJobPollInitialBackoff must be at least 1ms: 500µs"}},
		{"temporary project alone", with(func(o *o) { o.TempProject = "tp" }), []string{"FileLoads.TempProject needs FileLoads.TempDataset"}},
		{"temporary dataset with a project", with(func(o *o) { o.TempDataset = "tp.d" }), []string{`FileLoads.TempDataset is "tp.d"`}},
		{"project of a domain", with(func(o *o) { o.JobProject = "example.com:jobs" }), nil},
		{"hostile names", with(func(o *o) { o.JobProject, o.TempDataset = "p`; DROP", "d\n../x" }), []string{"JobProject", "TempDataset"}},
		{"call timeout", with(func(o *o) { o.CallTimeout = 10 * time.Millisecond }), []string{"CallTimeout must be at least 1s"}},
		{"copies of one table", with(func(o *o) { o.MaxCopyTables = 1 }), []string{"MaxCopyTables must be at least 2"}},
		{"more than a load takes", with(func(o *o) { o.MaxLoadFiles, o.MaxLoadBytes = 10_001, 1<<62 }), []string{"MaxLoadFiles must be at most 10000", "MaxLoadBytes must be at most 12094627905536"}},
		{"values that are none", with(func(o *o) { o.WriteDisposition, o.StagingFormat, o.EmptyInput = 9, 9, 9 }), []string{"WriteDisposition is 9", "StagingFormat is 9", "EmptyInput is 9"}},
		{"retry ids", with(func(o *o) { o.RetryIDLimit, o.InlineJobRetries = 101, 6 }), []string{"RetryIDLimit must be at most 100", "InlineJobRetries must be at most 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fileSink(c.options, Connection{})
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, phrase := range c.want {
				if !strings.Contains(err.Error(), phrase) {
					t.Errorf("%q is not in: %v", phrase, err)
				}
			}
		})
	}
}

// TestKnobsOfAnotherMethod are a mistake.
func TestKnobsOfAnotherMethod(t *testing.T) {
	for _, c := range []struct {
		o    SinkOptions
		want string
	}{
		{SinkOptions{FileLoads: staged}, "FileLoads is only valid for MethodFileLoads"},
		{SinkOptions{Method: MethodExactlyOnce, FileLoads: staged}, "FileLoads is only valid for MethodFileLoads"},
		{SinkOptions{Method: MethodFileLoads, FileLoads: staged, DefaultStream: DefaultStreamOptions{MaxAppendBytes: 1}}, "DefaultStream is only valid for MethodDefault"},
	} {
		if err := c.o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want: %s", err, c.want)
		}
	}
}

// TestFileLoadsFit asks a sink about jobs, and wants these phrases in the error, or this many warnings.
func TestFileLoadsFit(t *testing.T) {
	every := func(d time.Duration) stream.Shape { return stream.Shape{Streaming: true, Every: d} }
	batch := stream.Shape{Bounded: true}
	truncate, often := staged, staged
	truncate.WriteDisposition = WriteTruncateData
	often.MinCheckpointInterval = 30 * time.Second
	for _, c := range []struct {
		name     string
		options  FileLoadOptions
		shape    stream.Shape
		want     []string
		warnings int
	}{
		{"FL-7 a millisecond too often", staged, every(119_999 * time.Millisecond), []string{"1m59.999s", "2m0s", "1500", "1440", "720", "288"}, 0},
		{"FL-7 just often enough", staged, every(2 * time.Minute), nil, 1},
		{"FL-7 seldom", staged, every(5 * time.Minute), nil, 0},
		{"FL-8 the least that was asked for", often, every(30 * time.Second), nil, 1},
		{"FL-9 replacing on an interval", truncate, every(5 * time.Minute), []string{"WRITE_TRUNCATE_DATA", "WRITE_APPEND"}, 0},
		{"replacing at the end", truncate, batch, nil, 0},
		{"FL-10 undecided", staged, stream.Shape{Undecided: true, Bounded: true}, []string{"batch or a stream"}, 0},
		{"FL-10 no checkpoints", staged, stream.Shape{}, []string{"never be loaded"}, 0},
		{"FL-10 at least once", staged, stream.Shape{Streaming: true, Every: time.Hour, AtLeastOnce: true}, []string{"not exactly-once"}, 0},
		{"FL-10 no final checkpoint", staged, stream.Shape{Streaming: true, Every: time.Hour, NoCheckpointAtEnd: true}, []string{"never loaded"}, 0},
		{"a batch", staged, batch, nil, 0},
		{"two faults at once", truncate, every(time.Second), []string{"WRITE_APPEND", "1440"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink, err := fileSink(c.options, Connection{})
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			err = sink.Fits(c.shape, slog.New(slog.NewTextHandler(&log, nil)))
			if (err != nil) != (c.want != nil) || err != nil && !errors.Is(err, ErrUnsupportedPipeline) {
				t.Errorf("Fits: %v", err)
			}
			for _, phrase := range c.want {
				if !strings.Contains(err.Error(), phrase) {
					t.Errorf("%q is not in: %v", phrase, err)
				}
			}
			if n := strings.Count(log.String(), "level=WARN"); n != c.warnings {
				t.Errorf("%d warnings, want %d:\n%s", n, c.warnings, &log)
			}
		})
	}
}

// TestFileLoadEmulators: an emulator of one service is none of the other.
func TestFileLoadEmulators(t *testing.T) {
	for name, c := range map[string]struct {
		connection Connection
		missing    []string
	}{
		"FL-10 streams alone":  {Connection{GRPCEndpoint: "localhost:1"}, []string{"RESTEndpoint", "StorageEndpoint"}},
		"FL-10 jobs alone":     {Connection{RESTEndpoint: "localhost:1"}, []string{"StorageEndpoint"}},
		"FL-10 objects alone":  {Connection{StorageEndpoint: "localhost:1"}, []string{"RESTEndpoint"}},
		"FL-10 jobs, objects":  {Connection{RESTEndpoint: "localhost:1", StorageEndpoint: "localhost:1"}, nil},
		"FL-10 no emulator":    {Connection{}, nil},
		"FL-10 all three":      {Connection{GRPCEndpoint: "localhost:1", RESTEndpoint: "localhost:1", StorageEndpoint: "localhost:1"}, nil},
		"a key file and those": {Connection{RESTEndpoint: "localhost:1", StorageEndpoint: "localhost:1", KeyFile: "/k.json"}, []string{"KeyFile"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fileSink(staged, c.connection)
			if (err != nil) != (c.missing != nil) {
				t.Errorf("%v, want %v", err, c.missing)
			}
			for _, option := range []string{"RESTEndpoint is missing", "StorageEndpoint is missing"} {
				wanted := slices.Contains(c.missing, strings.Fields(option)[0])
				if said := err != nil && strings.Contains(err.Error(), option); said != wanted {
					t.Errorf("%s: %v", option, err)
				}
			}
		})
	}
}
