package job

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/lineage"
	"github.com/millrace-dev/millrace/stream"
)

// checker finds what the kinds of the values cannot tell: what belongs together, what excludes what.
type checker struct{ d *decoder }

func check(f *File, d *decoder) {
	c := checker{d}
	c.name(f.Job)
	if c.one("source", keysOf(reflect.TypeFor[Source]())...) {
		if f.Source.Files != nil {
			c.files(f.Source.Files)
		}
		if f.Source.BigQuery != nil {
			c.read(f)
		}
	}
	if c.one("sink", keysOf(reflect.TypeFor[Sink]())...) && f.Sink.BigQuery != nil {
		c.bigquery(f.Sink.BigQuery)
		c.avro(f)
		c.protobuf(f)
		if f.Source.Files != nil {
			c.together(f.Source.Files, &f.Sink.BigQuery.Schema)
		}
	}
	c.checkpoint(f.Checkpoint)
	c.lineage(f.Lineage)
	c.method(f)
	c.notNegative("parallelism", f.Parallelism)
	if f.Parallelism > engine.MaxLanes {
		c.fault("parallelism", "%d is too large: expected at most %d", f.Parallelism, engine.MaxLanes)
	}
	c.notNegative("restart.attempts", f.Restart.Attempts)
	if f.Restart.MaxDelay > 0 && f.Restart.MaxDelay < f.Restart.Delay {
		c.fault("restart.maxDelay", "%s is below delay %s", f.Restart.MaxDelay, f.Restart.Delay)
	}
}

// fault says what is wrong with the value of key, at the place where it stands or, if it is not there, where the
// nearest key above it does.
func (c checker) fault(key, format string, args ...any) {
	at, ok := c.d.places[key]
	for up := key; !ok && up != ""; at, ok = c.d.places[up] {
		up = up[:max(0, strings.LastIndexByte(up, '.'))]
	}
	c.d.faultAt(at, key, format, args...)
}

// sound reports that nothing was found wrong with key, or below it, so far.
func (c checker) sound(key string) bool {
	for _, f := range c.d.faults {
		if f.Key == key || strings.HasPrefix(f.Key, key+".") || strings.HasPrefix(f.Key, key+"[") {
			return false
		}
	}
	return true
}

// there reports that key was given.
func (c checker) there(key string) bool {
	_, ok := c.d.places[key]
	return ok
}

// one checks that exactly one of these keys of a section is given.
func (c checker) one(section string, known ...string) bool {
	var given []string
	for _, k := range known {
		if c.there(section + "." + k) {
			given = append(given, k)
		}
	}
	if len(given) == 1 {
		return true
	}
	if c.there(section) && c.sound(section) {
		if len(given) == 0 {
			c.fault(section, "expected one of %s", strings.Join(known, ", "))
		} else {
			c.fault(section, "has %s: expected only one of them", strings.Join(given, " and "))
		}
	}
	return false
}

func (c checker) notNegative(key string, n int) {
	if n < 0 {
		c.fault(key, "%d is negative: expected 0 (the default) or more", n)
	}
}

// name: a job's name keys its checkpoints and shows in logs and metrics.
func (c checker) name(name string) {
	switch {
	case !c.there("job") || !c.sound("job"):
	case strings.TrimSpace(name) == "":
		c.fault("job", "is empty: expected a name")
	case len(name) > 200:
		c.fault("job", "is %d bytes long: expected at most 200", len(name))
	case strings.IndexFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }) >= 0:
		c.fault("job", "%q has a character that cannot be seen: expected a name on one line", name)
	}
}

func (c checker) files(f *Files) {
	const key = "source.files.paths"
	if f.CSV != nil {
		c.csv(f)
	}
	if f.Format == "parquet" && slices.Contains(f.Paths, "-") {
		c.fault(key, "has standard input, and Parquet files are read from their ends: name files")
	}
	if c.there(key) && len(f.Paths) == 0 && c.sound(key) {
		c.fault(key, "is empty: name at least one file or pattern")
	}
	for i, p := range f.Paths {
		if p == "" || strings.ContainsRune(p, 0) {
			c.fault(fmt.Sprintf("%s[%d]", key, i), "%q is not a path", p)
		}
	}
}

// avro checks what goes with records of Avro files and what does not.
func (c checker) avro(f *File) {
	const source, sink = "source.files.", "sink.bigquery."
	if f.Source.Files == nil {
		return
	}
	if f.Source.Files.Format != "avro" {
		if c.there(source + "maxBlockBytes") {
			c.fault(source+"maxBlockBytes", "means nothing unless format is avro")
		}
		return
	}
	b := f.Sink.BigQuery
	if strings.ContainsAny(b.Table, "{}") && c.sound(sink+"table") {
		c.fault(sink+"table", "%q has placeholders, which records of Avro files do not fill: name one table", b.Table)
	}
	c.told("Avro, whose files tell their schema")
	if b.Schema.Infer != nil && c.there(sink+"schema.unknownFields") {
		c.fault(sink+"schema.unknownFields", "means nothing for a schema that is the files' own")
	}
}

// csv checks what is said about CSV files.
func (c checker) csv(f *Files) {
	const key = "source.files.csv"
	if f.Format != "csv" {
		if c.sound("source.files.format") {
			c.fault(key, "means nothing unless format is csv")
		}
		return
	}
	for name, text := range map[string]string{".delimiter": f.CSV.Delimiter, ".quote": f.CSV.Quote} {
		if len(text) > 1 {
			c.fault(key+name, "%q has %d bytes: expected one ASCII character", text, len(text))
		}
	}
	c.notNegative(key+".skipRows", f.CSV.SkipRows)
	if err := f.CSV.options().Validate(); err != nil && c.sound(key) {
		for line := range strings.Lines(err.Error()) {
			c.fault(key, "%s", strings.TrimPrefix(strings.TrimSpace(line), "csv: "))
		}
	}
}

// together checks what not every format of files has.
func (c checker) together(f *Files, s *Schema) {
	const key = "sink.bigquery.schema"
	if f.Format == "ndjson" || f.Format == "" || f.Format == "csv" {
		for _, k := range []string{".infer.geography", ".infer.required"} {
			if c.there(key + k) {
				c.fault(key+k, "needs files that tell their columns: Avro, Parquet or protobuf")
			}
		}
	}
	if at := "sink.bigquery.defaultStream.arrowBatches"; c.there(at) && f.Format != "parquet" {
		c.fault(at, "needs Parquet files, whose rows are read in Arrow batches")
	}
	switch {
	case f.Format != "csv" && f.Format != "parquet":
		return
	case s.Rest != "":
		c.fault(key+".rest", "needs documents of JSON: records of %s have no field that is not a column", f.Format)
	}
	if s.Infer != nil && s.Infer.Text {
		c.fault(key+".infer.text", "needs documents of JSON")
	}
	if s.Infer != nil && len(s.Infer.JSON) > 0 && f.Format == "csv" {
		c.fault(key+".infer.json", "needs documents of JSON, or Parquet: give a schema file")
	}
}

func (c checker) checkpoint(p Checkpoint) {
	c.notNegative("checkpoint.keep", p.Keep)
	if p.Store == "" || !c.sound("checkpoint.store") {
		return
	}
	if err := checkStore(p.Store); err != nil {
		c.fault("checkpoint.store", "%v", err)
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// lineage checks where lineage is told. Values that may hold a key are not quoted.
func (c checker) lineage(l *Lineage) {
	if l == nil || !c.sound("lineage") {
		return
	}
	if l.HTTP == nil && l.File == "" {
		c.fault("lineage", "says nowhere to tell it: expected file, http or both")
	}
	if strings.ContainsRune(l.File, 0) {
		c.fault("lineage.file", "%q is not a path", l.File)
	}
	if strings.ContainsFunc(l.Namespace, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		c.fault("lineage.namespace", "%q has a character that cannot be seen", l.Namespace)
	}
	if l.HTTP == nil {
		return
	}
	if _, err := lineage.ParseURL(l.HTTP.URL); err != nil {
		c.fault("lineage.http.url", "%v", err)
	}
	if name := l.HTTP.TokenEnv; name != "" && !variableName.MatchString(name) {
		c.fault("lineage.http.tokenEnv", "is no name of an environment variable: expected such as LINEAGE_TOKEN; the token itself has no place in a job file")
	}
}

// method checks what the write method asks of the rest of the job.
func (c checker) method(f *File) {
	b := f.Sink.BigQuery
	if b == nil {
		return
	}
	const key = "sink.bigquery."
	for section, method := range map[string]string{"defaultStream": "default", "bufferedStream": "exactly-once", "fileLoads": "file-loads"} {
		if c.there(key+section) && method != cmp.Or(b.Method, "default") && c.sound(key+"method") {
			c.fault(key+section, "is only for method %s", method)
		}
	}
	if b.FilesLoaded() {
		c.fits(f)
	}
	if !b.Commits() {
		return
	}
	if err := checkLasting(f.Checkpoint.Store); err != nil && c.sound("checkpoint.store") {
		c.fault("checkpoint.store", "%v", err)
	}
	if in := f.Source.Files; in != nil && slices.Contains(in.Paths, "-") {
		c.fault(key+"method", "is %s, and standard input cannot be read again after a crash: name files, or use method default", b.Method)
	}
}

// fits asks the sink about the way that the job is run.
func (c checker) fits(f *File) {
	o := f.Sink.BigQuery.sinkOptions()
	every := f.Checkpoint.Every
	if o.Validate() != nil || !c.sound("checkpoint.every") {
		return // told elsewhere
	}
	if err := o.Fits(stream.Shape{Bounded: true, Streaming: every > 0, Every: every}, slog.New(slog.DiscardHandler)); err != nil {
		for line := range strings.Lines(err.Error()) {
			at, msg := sinkFault(line)
			if !c.there(at) || at == "sink.bigquery" {
				at = "checkpoint.every"
			}
			c.fault(at, "%s", msg)
		}
	}
}

// checkLasting says that a store that dies with the process cannot hold what exactly-once delivery needs to remember.
func checkLasting(store string) error {
	if strings.HasPrefix(store, "mem:") {
		return fmt.Errorf("%q is in memory, and exactly-once delivery needs checkpoints that outlive the process: expected file://folder or gs://bucket/prefix", store)
	}
	return nil
}

// CheckStore says what is wrong with the URL of a checkpoint store for this job, as far as that can be told without opening it.
func (p *Parsed) CheckStore(store string) error {
	if err := checkStore(store); err != nil || !p.Sink.BigQuery.Commits() {
		return err
	}
	return checkLasting(store)
}

func checkStore(store string) error {
	scheme, rest, ok := strings.Cut(store, "://")
	if ok {
		if known := []string{"file", "gs", "mem"}; !slices.Contains(known, scheme) {
			return fmt.Errorf("unknown scheme %q%s", scheme, didYouMean(scheme, known))
		}
	}
	if _, err := url.Parse(store); err != nil || !ok || rest == "" && scheme != "mem" {
		return fmt.Errorf("%q is not a URL: expected file://folder, gs://bucket/prefix or mem://", store)
	}
	return nil
}

func (c checker) bigquery(b *BigQuery) {
	const key = "sink.bigquery."
	c.table(key+"table", b.Table)
	if c.one(key+"schema", "file", "table", "infer") && b.Schema.Infer != nil {
		c.notNegative(key+"schema.infer.sample", b.Schema.Infer.Sample)
	}
	if b.Schema.Rest != "" && b.Schema.UnknownFields == "ignore" {
		c.fault(key+"schema.unknownFields", "is ignore while rest names a column that takes what is unknown: leave one out")
	}
	if b.Schema.Rest != "" {
		if err := table.CheckName(b.Schema.Rest); err != nil {
			c.fault(key+"schema.rest", "%v", err)
		}
	}
	if b.Schema.Table && b.SchemaUpdate != (SchemaUpdate{}) {
		c.fault(key+"schemaUpdate", "changes nothing while the columns are those of the table, as schema.table says: leave one out")
	}
	c.create(key+"create", &b.Create)
	c.failures(key+"failures", b.Failures, b.Table)
	c.options(key, b)
}

// table checks a name, or a name with placeholders, and finds the place of the fault in it.
func (c checker) table(key, pattern string) {
	if !c.there(key) || !c.sound(key) {
		return
	}
	_, _, err := resolver(pattern, ndjsonFormat{})
	var at *bigquery.PatternError
	switch {
	case errors.As(err, &at):
		where := c.d.places[key]
		where.column += at.Column - 1 + where.quoted
		c.d.faultAt(where, key, "%s in %q", at.Msg, pattern)
	case err != nil:
		c.fault(key, "%v", err)
	}
}

func (c checker) create(key string, o *Create) {
	if len(o.Cluster) > 4 {
		c.fault(key+".cluster", "has %d columns: expected at most 4", len(o.Cluster))
	}
	for i, name := range o.Cluster {
		if strings.TrimSpace(name) == "" {
			c.fault(fmt.Sprintf("%s.cluster[%d]", key, i), "is empty: expected the name of a column")
		}
	}
}

func (c checker) failures(key string, f Failures, table string) {
	switch {
	case f.Policy == "dead-letter" && f.DeadLetter == nil:
		c.fault(key+".policy", "is dead-letter, and deadLetter does not say where to: add deadLetter: { file: dead-letters.ndjson }")
	case f.Policy != "dead-letter" && f.DeadLetter != nil && c.sound(key+".policy"):
		c.fault(key+".deadLetter", "means nothing unless policy is dead-letter")
	case f.DeadLetter != nil:
		c.deadLetter(key+".deadLetter", f.DeadLetter, table)
	}
}

// options asks the sink's own check, which knows the bounds, about what is left.
func (c checker) options(key string, b *BigQuery) {
	if k := b.Connection; k.RESTEndpoint != "" && k.GRPCEndpoint == "" && !b.FilesLoaded() {
		c.fault("sink.bigquery.connection", "has restEndpoint, and rows are written over grpcEndpoint: name it too")
	}
	c.setZero(key+"defaultStream", b.DefaultStream)
	c.setZero(key+"bufferedStream", b.BufferedStream)
	c.setZero(key+"fileLoads", b.FileLoads)
	o := b.sinkOptions()
	o.Connection = b.Connection.options()
	if err := o.Validate(); err != nil && c.sound("sink.bigquery") {
		for line := range strings.Lines(err.Error()) {
			at, msg := sinkFault(line)
			c.fault(at, "%s", msg)
		}
	}
}
