package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
)

// Replay says which dead letters of a job are to be written anew.
type Replay struct {
	Queues []string // files of dead letters, with those that go on from them
	// Again is the file for letters that fail again. By default it stands beside the first queue: dlq.again.ndjson.
	Again string
	// Store is the checkpoint store, where it is not the job file's.
	Store string
}

// replayName is what the checkpoints of a job's replays are kept under.
func replayName(job string) string { return job + " (replay of dead letters)" }

// PrepareReplay makes the replay of a job's dead letters ready to run: their records, as they came in, go the way of the job's.
// What earlier replays have taken up, as the job's checkpoint store tells, is not taken up again.
//
// Columns are what the job file says. Where it says that they are inferred, they are those of the tables as they are now; for
// tables that do not exist they are inferred from the letters.
func (p *Parsed) PrepareReplay(ctx context.Context, s Surroundings, r Replay) (*Pipeline, error) {
	pl := &Pipeline{file: p, name: replayName(p.Job)}
	again, err := pl.openReplay(ctx, r)
	if err != nil {
		return nil, err
	}
	pl.policy = pl.Letters.Failures(again)
	return pl, p.Keyed(pl.build(ctx, s))
}

func (pl *Pipeline) openReplay(ctx context.Context, r Replay) (*filequeue.Queue, error) {
	of := func(l *deadletter.Letter) files.Record {
		_, record := l.Payload()
		return files.Record{Bytes: record}
	}
	if pl.file.Source.Files != nil {
		of = pl.file.Source.Files.recordOf()
	}
	if of == nil {
		return nil, fmt.Errorf("source.files.format: %s: dead letters of this format do not hold their records: write the files anew", pl.file.Source.Files.Format)
	}
	store := cmp.Or(r.Store, pl.file.StoreURL())
	if strings.HasPrefix(store, "mem:") {
		return nil, errors.New("checkpoint.store: mem:// forgets what was replayed when the process ends: name a folder or a bucket")
	}
	state, err := lastState(ctx, store, pl.name)
	if err != nil {
		return nil, fmt.Errorf("what was replayed before: %w", err)
	}
	pl.Letters, err = filequeue.NewReplay(ctx, r.Queues, filequeue.ReplayOptions{Job: pl.file.Job, Record: of, State: state})
	if err != nil {
		return nil, err
	}
	pl.input, pl.DeadLetters = pl.Letters, r.Again
	for _, q := range r.Queues {
		if abs, err := filepath.Abs(q); err == nil {
			pl.queues = append(pl.queues, abs)
		}
	}
	if r.Again == "" {
		ext := filepath.Ext(r.Queues[0])
		pl.DeadLetters = strings.TrimSuffix(r.Queues[0], ext) + ".again" + ext
	}
	if slices.ContainsFunc(r.Queues, func(q string) bool { return filepath.Clean(q) == filepath.Clean(pl.DeadLetters) }) || pl.Letters.Reads(pl.DeadLetters) {
		return nil, fmt.Errorf("%s is among the files that are replayed: letters that fail again would be replayed without end; write them to another file", pl.DeadLetters)
	}
	return filequeue.New(pl.DeadLetters, filequeue.Options{})
}

// recordOf makes the record of a letter, as the reader of the format made it. nil: letters of the format do not hold it.
func (f *Files) recordOf() func(*deadletter.Letter) files.Record {
	switch f.Format {
	case "parquet":
		return nil
	case "csv":
		return func(l *deadletter.Letter) files.Record {
			_, record := l.Payload()
			r := files.Record{Bytes: record}
			if l.Context != "" {
				r.Header = []byte(l.Context)
			}
			return r
		}
	}
	return func(l *deadletter.Letter) files.Record {
		_, record := l.Payload()
		return files.Record{Bytes: record, Schema: l.Context}
	}
}

// lastState is the enumerator's in a job's newest checkpoint, nil if it has none.
func lastState(ctx context.Context, url, job string) ([]byte, error) {
	store, err := engine.OpenStore(ctx, url)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	ids, err := store.List(ctx, job)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		data, err := store.Load(ctx, job, id)
		if errors.Is(err, engine.ErrNoCheckpoint) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c, err := engine.DecodeCheckpoint(data)
		if errors.Is(err, engine.ErrDamaged) || err == nil && (c.Job != job || c.ID != id) {
			continue // as the engine does
		}
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", id, err)
		}
		return c.Enumerator, nil
	}
	return nil, nil
}

// ofLetters answers what the rows of the tables that letters go to look like.
func (pl *Pipeline) ofLetters(ctx context.Context, to bigquery.Resolver[files.Record], fixed bool, in Infer, c bigquery.Connection) (jsonrow.Schemas, error) {
	sc := pl.inferring(to, fixed, in)
	if err := sc.run(ctx); err != nil {
		return nil, err
	}
	known := map[table.Destination]*jsonrow.Mapping{}
	for _, dst := range sc.destinations() {
		schema, err := bigquery.TableSchema(ctx, c, dst)
		switch {
		case err == nil:
			known[dst] = pl.describedBy(schema)
			delete(sc.seen, dst)
		case !errors.Is(err, bigquery.ErrAbsent):
			return nil, fmt.Errorf("columns of %s: %w", dst, err)
		case sc.seen[dst].documents == 0:
			delete(sc.seen, dst) // its letters fail again, one by one
		}
	}
	var err error
	if pl.Inferred, err = sc.schemas(pl.file); err != nil {
		return nil, err
	}
	for _, inf := range pl.Inferred {
		known[inf.Destination] = inf.Mapping
	}
	return lookup(known), nil
}

// tableOrFirstLetter is the table's schema or, where there is no table, the text of the Avro schema that the first letter's
// record was written with.
func (pl *Pipeline) tableOrFirstLetter(ctx context.Context, c bigquery.Connection, dst table.Destination) (*table.Schema, string, error) {
	schema, err := bigquery.TableSchema(ctx, c, dst)
	if err == nil || !errors.Is(err, bigquery.ErrAbsent) {
		return schema, "", err
	}
	for rec, err := range pl.records().Records(ctx) {
		if err != nil {
			return nil, "", err
		}
		return nil, rec.Value.Schema, nil
	}
	return nil, `{"type":"record","name":"none","fields":[{"name":"none","type":"string"}]}`, nil // no letter: no row
}
