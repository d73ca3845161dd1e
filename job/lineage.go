package job

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/lineage"
)

// Datasets is what the job is configured to read and write, as lineage systems name it: files, or the folders of patterns, and the table, unless its name
// has placeholders. It reads nothing but the configuration.
func (p *Parsed) Datasets() (inputs, outputs []lineage.Dataset, err error) {
	if p.Source.Files != nil {
		src, err := p.source(nil)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range src.Lineage() {
			inputs = append(inputs, lineage.NewFile(path))
		}
	}
	if from, ok := p.Reads(); ok {
		inputs = append(inputs, tableDataset(from))
	}
	if pattern := p.Sink.BigQuery.Table; !strings.ContainsAny(pattern, "{}") {
		dst, err := table.ParseDestination(pattern)
		if err != nil {
			return nil, nil, err
		}
		outputs = append(outputs, tableDataset(dst))
	}
	return inputs, outputs, nil
}

func tableDataset(dst table.Destination) lineage.Dataset {
	return lineage.NewTable(dst.Project, dst.Dataset, dst.Table)
}

// defaultLineageEvery is how often a run that goes on tells about it.
const defaultLineageEvery = time.Minute

// teller tells the lineage of one run.
type teller struct {
	pl      *Pipeline
	emitter *lineage.Emitter
	log     *slog.Logger
	handle  *engine.Handle
	run     lineage.Run
	job     lineage.Job
	inputs  []lineage.Dataset
	outputs []lineage.Dataset // as configured

	stop, stopped chan struct{}
}

// tell begins to tell the lineage of a run; without a section on lineage it answers nil. Errors are mistakes of the
// configuration.
func (pl *Pipeline) tell(o RunOptions) (*teller, error) {
	l := pl.file.Lineage
	if l == nil {
		return nil, nil
	}
	out := lineage.Options{Meter: o.Meter, Log: o.Log}
	if l.File != "" {
		out.File = pl.file.path(l.File)
		if pl.source != nil && pl.source.Reads(out.File) {
			return nil, pl.file.invalid("lineage.file", errors.New("is among the files that are read: events would become records; write them to another file"))
		}
	}
	if l.HTTP != nil {
		token, err := l.HTTP.token()
		if err != nil {
			return nil, pl.file.invalid("lineage.http.tokenEnv", err)
		}
		out.HTTP = &lineage.HTTP{URL: l.HTTP.URL, Token: token, Timeout: l.HTTP.Timeout}
	}
	inputs, outputs, err := pl.file.Datasets()
	if err != nil {
		return nil, err
	}
	if pl.Letters != nil { // the dead letters of the job
		inputs = nil
		for _, path := range pl.queues {
			inputs = append(inputs, lineage.NewFile(path))
		}
	}
	emitter, err := lineage.New(out)
	if err != nil {
		return nil, pl.file.invalid("lineage", err)
	}
	t := &teller{pl: pl, emitter: emitter, log: o.Log, handle: o.Handle, inputs: inputs, outputs: outputs,
		run: lineage.Run{ID: lineage.NewRunID(time.Now()), Facets: lineage.RunFacets{Engine: lineage.NewEngineFacet(version())}},
		job: lineage.Job{Namespace: cmp.Or(l.Namespace, "default"), Name: pl.name,
			Facets: lineage.JobFacets{Type: lineage.NewJobTypeFacet(pl.input.Bounded())}},
		stop: make(chan struct{}), stopped: make(chan struct{})}
	t.emit(lineage.Start, nil)
	go t.follow(cmp.Or(l.Every, defaultLineageEvery)) // ends with end
	return t, nil
}

// token is what the environment variable holds. Its name is not quoted: who writes the token itself there is not to find it
// in a log.
func (h *LineageHTTP) token() (string, error) {
	if h.TokenEnv == "" {
		return "", nil
	}
	token := strings.TrimSpace(os.Getenv(h.TokenEnv))
	if token == "" {
		return "", errors.New("names an environment variable that is empty or not there")
	}
	return token, nil
}

// invalid is a fault of the file that its text does not show.
func (p *Parsed) invalid(key string, err error) error {
	return &InvalidError{[]Fault{{File: p.Name, Key: key, Msg: err.Error()}}}
}

// follow tells now and then that the run goes on.
func (t *teller) follow(every time.Duration) {
	defer close(t.stopped)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.emit(lineage.Running, nil)
		case <-t.stop:
			return
		}
	}
}

// end tells how the run ended. A nil teller tells nothing.
func (t *teller) end(ctx context.Context, r engine.Result, err error) {
	if t == nil {
		return
	}
	close(t.stop)
	<-t.stopped
	switch {
	case err == nil && r.Outcome == engine.Stopped, err != nil && ctx.Err() != nil:
		t.emit(lineage.Abort, nil)
	case err == nil:
		t.emit(lineage.Complete, nil)
	default:
		t.emit(lineage.Fail, err)
	}
	within := lineage.CloseTimeout
	if ctx.Err() != nil {
		within = time.Second // somebody wants to stop at once
	}
	if err := t.emitter.Close(within); err != nil && t.log != nil {
		t.log.WarnContext(ctx, "closing failed", "part", "lineage", "error", err)
	}
}

func (t *teller) emit(event lineage.EventType, failed error) {
	ev := lineage.NewRunEvent(event, time.Now(), t.run, t.job)
	if failed != nil {
		ev.Run.Facets.Error = lineage.NewErrorFacet(failed)
	}
	for _, d := range t.inputs {
		ev.Inputs = append(ev.Inputs, lineage.Input{Dataset: d})
	}
	if event != lineage.Start && len(ev.Inputs) == 1 { // of several, nobody knows which rows came from where
		s := t.handle.Status()
		ev.Inputs[0].InputFacets.Statistics = lineage.NewInputStatistics(s.Tally.Read, s.InputBytes)
	}
	ev.Outputs = t.written(event)
	t.emitter.Emit(ev)
}

// written is the tables that are configured, and those that rows went to, with what was written, and at both ends of the run
// with their columns: a job of ten thousand tables would tell a hundred megabytes of them each minute.
func (t *teller) written(event lineage.EventType) []lineage.Output {
	outputs := []lineage.Output{}
	reports := map[string]bigquery.DestinationReport{}
	datasets := append([]lineage.Dataset{}, t.outputs...)
	for _, r := range t.pl.sink.Report() {
		d := tableDataset(r.Destination)
		reports[d.Name] = r
		if r.Rows > 0 && (len(t.outputs) == 0 || t.outputs[0].Name != d.Name) {
			datasets = append(datasets, d)
		}
	}
	for _, d := range datasets {
		if event != lineage.Running {
			d.Facets.Schema = t.columns(d)
		}
		out := lineage.Output{Dataset: d}
		if event != lineage.Start {
			out.OutputFacets.Statistics = lineage.NewOutputStatistics(reports[d.Name].Rows, reports[d.Name].Bytes)
		}
		outputs = append(outputs, out)
	}
	return outputs
}

// columns is the columns that rows for a table have, nil where they are not known.
func (t *teller) columns(d lineage.Dataset) *lineage.SchemaFacet {
	s, err := t.pl.serializer.Schema(table.Destination{Project: d.Facets.GCP.Project, Dataset: d.Facets.GCP.Dataset, Table: d.Facets.GCP.Table})
	if err != nil || s == nil {
		return nil
	}
	return lineage.NewSchemaFacet(fieldsOf(s.Fields))
}

func fieldsOf(fields []table.Field) []lineage.Field {
	all := make([]lineage.Field, len(fields))
	for i, f := range fields {
		all[i] = lineage.Field{Name: f.Name, Type: typeOf(f), Description: f.Description}
		if len(f.Fields) > 0 {
			all[i].Fields = fieldsOf(f.Fields)
		}
	}
	return all
}

// typeOf is a column's type as GoogleSQL writes it, without the members of a STRUCT.
func typeOf(f table.Field) string {
	name := f.Type.String()
	if f.Type == table.Range {
		name += "<" + f.Range.String() + ">"
	}
	if f.Mode == table.Repeated {
		name = "ARRAY<" + name + ">"
	}
	return name
}

// version is this module's, as the program was built with it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	const module = "github.com/millrace-dev/millrace"
	if info.Main.Path == module {
		return cmp.Or(info.Main.Version, "unknown")
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "unknown"
}
