package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/cdc"
)

// Recovery says what a store found in its folder.
type Recovery struct {
	Checkpoint int   // number of the checkpoint read; 0 is none
	Changes    int   // replayed from the log
	Rows       int64 // of them, rows
	// CutBytes is the end of the log that a killed process had not written to the last byte. Nothing of it was acknowledged.
	CutBytes int64
}

// recover reads a folder: the checkpoint, then the log behind it.
func (s *Store) recover() error {
	m, written, err := readManifest(s.options.Dir)
	if err != nil {
		return err
	}
	s.manifest = m
	segments, err := m.segments(s.options.Dir, written)
	if err != nil {
		return err
	}
	replay := &replay{store: s, instances: map[int64]*Table{}, streams: map[int64]*Stream{}, end: -1}
	if s.manifest.Checkpoint > 0 {
		if err := replay.checkpoint(s.manifest.Checkpoint); err != nil {
			return err
		}
	}
	for _, number := range segments {
		if err := replay.segment(number, number == segments[len(segments)-1]); err != nil {
			return err
		}
	}
	s.recovery = replay.found
	s.recovery.Checkpoint = s.manifest.Checkpoint
	s.version.Store(s.assigned)
	s.log = &wal{dir: s.options.Dir, sync: s.options.Sync, number: m.Log + len(segments) - 1, size: max(0, replay.end)}
	if err := s.log.create(); err != nil || written && m.Format == manifestFormat {
		return err
	}
	// Before anything is written that an older version would not understand, or worse, take for something else.
	s.manifest.Format = manifestFormat
	return s.manifest.write(s.options.Dir)
}

// replay applies what is on disk to a new store. Nothing else runs meanwhile.
type replay struct {
	store     *Store
	instances map[int64]*Table
	streams   map[int64]*Stream // by key
	found     Recovery
	end       int64 // of the last segment: where its whole frames end; -1 before the first
}

// segment replays one segment of the log. Only the last may be torn; it is cut there.
func (r *replay) segment(number int, last bool) error {
	f, err := os.OpenFile(filepath.Join(r.store.options.Dir, segmentName(number)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	before := r.end
	r.end = 0
	end, err := frames(f, walMagic, func(payload []byte) error {
		if payload[0] == frameContinues {
			return checkContinues(payload, number, before)
		}
		return r.frame(payload)
	})
	r.end = end
	if errors.Is(err, errTorn) {
		err = r.torn(f, end, number, last)
	}
	return errors.Join(err, f.Close())
}

// checkContinues holds a segment to the end of the one before, which is not known to the first.
func checkContinues(payload []byte, number int, before int64) error {
	continues, err := parseContinues(payload)
	if err == nil && before >= 0 && before != continues {
		err = fmt.Errorf("%s ended at byte %d when this segment was begun, and ends at byte %d: a part of it is lost", segmentName(number-1), continues, before)
	}
	return err
}

// torn cuts a segment that a killed process has left in the middle of a frame. One whose frame was written to its end, or has
// whole frames behind it, is no such segment: they were acknowledged, and to cut them off would lose them without a word.
func (r *replay) torn(f *os.File, end int64, number int, last bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if end == 0 && info.Size() < magicBytes {
		return nil // killed while it was made: there was nothing in it yet
	}
	if !last {
		return fmt.Errorf("%s is damaged at byte %d, and the log goes on behind it in %s", f.Name(), end, segmentName(number+1))
	}
	next, err := frameBehind(f, end, info.Size())
	changed := false
	if err == nil && next == 0 {
		changed, err = changedFrame(f, end, info.Size())
	}
	if err != nil {
		return err
	}
	if next > 0 || changed {
		return fmt.Errorf("%s is damaged at byte %d of %d, and not by a process that was killed: put a copy of it in its place, "+
			"or cut it at byte %d and lose what was written after that", f.Name(), end, info.Size(), end)
	}
	r.found.CutBytes = info.Size() - end
	return f.Truncate(end)
}

func (r *replay) frame(payload []byte) error {
	r.found.Changes++
	switch payload[0] {
	case frameCatalog:
		var c catalogRecord
		if err := json.Unmarshal(payload[1:], &c); err != nil {
			return err
		}
		if err := c.sound(); err != nil {
			return err
		}
		return r.catalog(&c)
	case frameRows:
		return r.rows(payload, nil, 0)
	case frameChanges:
		changes, retention, rows, err := parseChanges(payload)
		if err != nil {
			return err
		}
		return r.rows(rows, changes, retention)
	}
	return fmt.Errorf("kind %d is unknown", payload[0])
}

func (r *replay) catalog(c *catalogRecord) error {
	s := r.store
	s.assigned = max(s.assigned, c.Version)
	switch c.Op {
	case opPutDataset:
		e := s.datasets[c.Dataset.Ref]
		if e == nil {
			e = &datasetEntry{tables: map[string]*Table{}}
			s.datasets[c.Dataset.Ref] = e
		}
		e.dataset = c.Dataset
		return nil
	case opDeleteDataset:
		delete(s.datasets, c.Ref.DatasetRef())
		return nil
	case opCreateStream, opFlushStream, opFinalizeStream, opCommitStreams, opExpireStream:
		return r.streamChange(c)
	case opPutJob:
		s.keepJob(*c.Job)
		return nil
	}
	e := s.datasets[c.Ref.DatasetRef()]
	if e == nil {
		return fmt.Errorf("%s of table %s, whose dataset is unknown", c.Op, c.Ref)
	}
	switch c.Op {
	case opDeleteTable:
		delete(e.tables, c.Ref.Table)
		return nil
	case opPutTable:
		if err := r.putTable(e, c); err != nil || c.Rows == nil {
			return err
		}
		return r.rows(c.Rows, nil, 0)
	case opRenameTable:
		if t := e.tables[c.Ref.Table]; t != nil && c.To != nil && *c.To != *c.Ref && c.To.DatasetRef() == c.Ref.DatasetRef() {
			change := &renameTable{ref: *c.Ref, to: *c.To}
			change.publish(s, c.Version)
			r.instances[c.Version] = change.table
			if change.written.Count == 0 {
				return nil
			}
			return r.recovered(nil, change.table, change.written)
		}
	case opApply:
		if t := r.instances[c.Instance]; t != nil {
			t.settle(c.Version)
			t.endWait(c.Version)
			return nil
		}
	case opMode:
		if t := e.tables[c.Ref.Table]; t != nil {
			t.mode = c.Mode
			return nil
		}
	}
	return fmt.Errorf("%s of table %s makes no sense", c.Op, c.Ref)
}

// putTable makes a table, or gives one its next definition.
func (r *replay) putTable(e *datasetEntry, c *catalogRecord) error {
	t := e.tables[c.Ref.Table]
	if t == nil || t.instance != c.Instance {
		t = &Table{store: r.store, ref: *c.Ref, instance: c.Instance, mode: c.Mode}
		e.tables[c.Ref.Table], r.instances[c.Instance] = t, t
	}
	if len(t.infos) > 0 {
		t.settle(c.Version)
	}
	if c.Info.Number != len(t.infos) {
		return fmt.Errorf("definition %d of table %s, which has %d", c.Info.Number, c.Ref, len(t.infos))
	}
	t.infos = append(t.infos, c.Info)
	return nil
}

// rows replays a write of rows, with what they do to those of their keys if they are changes.
func (r *replay) rows(payload []byte, changes []cdc.Change, retention int64) error {
	record, err := parseRows(payload)
	if err != nil {
		return err
	}
	t := r.instances[record.instance]
	if t == nil {
		return fmt.Errorf("rows of an unknown table (instance %d)", record.instance)
	}
	w := &write{table: t, Rows: Rows{Truncate: record.truncate, Definition: record.definition, Note: record.note, Count: record.count, Job: record.job, Remove: record.remove, Ingested: record.ingested}}
	w.Changes, w.retention = changes, retention
	if w.Definition == nil {
		if record.number >= len(t.infos) {
			return fmt.Errorf("rows of table %s are shaped by definition %d, which is unknown", t.ref, record.number)
		}
		w.Info = t.infos[record.number]
	}
	if record.stream != 0 {
		if w.Stream = r.streams[record.stream]; w.Stream == nil || w.Stream.table != t {
			return fmt.Errorf("rows of table %s belong to an unknown stream (key %d)", t.ref, record.stream)
		}
		w.placed, w.Stream.next = record.offset, record.offset+record.count
	}
	if w.Definition != nil {
		if err := w.Definition.Sound(); err != nil {
			return fmt.Errorf("rows of table %s: %w", t.ref, err)
		}
	}
	if w.Batches, err = record.decode(w.shape().Arrow()); err != nil {
		return fmt.Errorf("rows of table %s: %w", t.ref, err)
	}
	if err := w.soundReplay(record.version); err != nil {
		return err
	}
	if changes != nil {
		if err := w.prepareReplay(); err != nil {
			return err
		}
	}
	r.store.assigned = max(r.store.assigned, record.version)
	w.publish(r.store, record.version)
	r.found.Rows += w.written.Count
	return r.recovered(record.note, t, w.written)
}

func (r *replay) recovered(note []byte, t *Table, w Written) error {
	if r.store.options.Recovered == nil {
		return nil
	}
	return r.store.options.Recovered(note, t, w)
}

// streamChange replays what happened to created streams.
func (r *replay) streamChange(c *catalogRecord) error {
	t := r.instances[c.Instance]
	if t == nil {
		return fmt.Errorf("%s of an unknown table (instance %d)", c.Op, c.Instance)
	}
	if c.Op == opCreateStream && len(c.Streams) == 1 {
		made := c.Streams[0]
		if made.Kind < Committed || made.Kind > Buffered {
			return fmt.Errorf("%s of kind %s", c.Op, made.Kind)
		}
		s := &Stream{table: t, id: made.ID, kind: made.Kind, key: made.Key, touched: made.Key}
		r.streams[s.key] = s
		t.adopt(s)
		return nil
	}
	streams := make([]*Stream, len(c.Streams))
	for i, named := range c.Streams {
		if streams[i] = r.streams[named.Key]; streams[i] == nil || streams[i].table != t {
			return fmt.Errorf("%s of an unknown stream (key %d)", c.Op, named.Key)
		}
	}
	if c.Op == opCommitStreams {
		change := &commitStreams{table: t, streams: streams}
		change.publish(r.store, c.Version)
		return r.recovered(c.Note, t, change.written)
	}
	if len(streams) != 1 {
		return fmt.Errorf("%s of %d streams", c.Op, len(streams))
	}
	switch c.Op {
	case opFinalizeStream:
		(&finalizeStream{stream: streams[0]}).publish(r.store, c.Version)
		return nil
	case opExpireStream:
		(&expireStream{stream: streams[0]}).publish(r.store, c.Version)
		return nil
	case opFlushStream:
		if err := streams[0].soundShow(c.Streams[0].Shown); err != nil {
			return err
		}
		change := &flushStream{stream: streams[0], offset: c.Streams[0].Shown - 1}
		change.publish(r.store, c.Version)
		return r.recovered(c.Note, t, change.written)
	}
	return fmt.Errorf("%s of streams makes no sense", c.Op)
}

// checkpoint loads a checkpoint.
func (r *replay) checkpoint(number int) error {
	dir := r.store.options.Dir
	f, err := os.Open(filepath.Join(dir, checkpointName(number)))
	if err != nil {
		return err
	}
	var state checkpointState
	whole := errors.New("it holds nothing")
	_, err = frames(f, checkpointMagic, func(payload []byte) error {
		whole = nil
		return json.Unmarshal(payload, &state)
	})
	if err == nil {
		err = whole
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("checkpoint %s: %w", f.Name(), err)
	}
	data := &dataReader{dir: dir, files: map[int]*os.File{}, sizes: map[int]int64{}}
	r.store.assigned = state.Version
	for _, j := range state.Jobs {
		r.store.keepJob(j)
	}
	if state.Version < 0 || state.Version > most {
		err = fmt.Errorf("it is of version %d", state.Version)
	}
	for i := 0; err == nil && i < len(state.Datasets); i++ {
		err = r.dataset(&state.Datasets[i], data)
	}
	if err != nil {
		err = fmt.Errorf("checkpoint %s: %w", f.Name(), err)
	}
	return errors.Join(err, data.close())
}

func (r *replay) dataset(d *datasetState, data *dataReader) error {
	if d.Dataset == nil {
		return fmt.Errorf("a dataset of nothing")
	}
	e := &datasetEntry{dataset: d.Dataset, tables: map[string]*Table{}}
	r.store.datasets[d.Dataset.Ref] = e
	for i := range d.Tables {
		ts := &d.Tables[i]
		if err := ts.sound(); err != nil {
			return fmt.Errorf("dataset %s: %w", d.Dataset.Ref, err)
		}
		t := &Table{
			store: r.store, ref: ts.Infos[0].Ref, instance: ts.Instance, infos: ts.Infos, mode: ts.Mode,
			rows: ts.Rows, dead: ts.Dead, bytes: ts.Bytes, touched: ts.Touched,
			killed: ts.Killed, gone: ts.Gone,
		}
		var err error
		if t.changes, err = data.changes(ts.Changes); err != nil {
			return fmt.Errorf("table %s: index of changes: %w", t.ref, err)
		}
		if t.chunks, err = data.chunks(ts.Chunks, ts.Infos, t.rows); err != nil {
			return fmt.Errorf("table %s: %w", t.ref, err)
		}
		if err := r.loadStreams(t, ts, data); err != nil {
			return fmt.Errorf("table %s: %w", t.ref, err)
		}
		e.tables[t.ref.Table], r.instances[t.instance] = t, t
	}
	return nil
}

func (r *replay) loadStreams(t *Table, ts *tableState, data *dataReader) error {
	for i := range ts.Streams {
		ss := &ts.Streams[i]
		if err := ss.sound(); err != nil {
			return err
		}
		s := &Stream{
			table: t, id: ss.ID, kind: ss.Kind, key: ss.Key, next: ss.End, end: ss.End, last: ss.Last, cursor: ss.Cursor,
			touched: ss.Touched, finalized: ss.Finalized, committed: ss.Committed,
		}
		var err error
		if s.chunks, err = data.chunks(ss.Chunks, ts.Infos, s.end); err != nil {
			return fmt.Errorf("write stream %s: %w", s.id, err)
		}
		r.streams[s.key] = s
		t.adopt(s)
	}
	return nil
}

// dataReader reads rows back from data files, which it keeps open.
type dataReader struct {
	dir   string
	files map[int]*os.File
	sizes map[int]int64
}

// chunks reads the chunks of a table or a stream of so many rows.
func (d *dataReader) chunks(states []chunkState, infos []*Info, rows int64) (out []*chunk, err error) {
	begin := int64(0)
	for i := range states {
		c, err := d.chunk(&states[i], infos)
		if err == nil {
			err = c.sound(begin, rows)
		}
		if err != nil {
			return nil, err
		}
		begin = c.first + c.rows
		out = append(out, c)
	}
	return out, nil
}

func (d *dataReader) chunk(cs *chunkState, infos []*Info) (*chunk, error) {
	if cs.Number < 0 || cs.Number >= len(infos) {
		return nil, fmt.Errorf("a chunk is shaped by definition %d, which is unknown", cs.Number)
	}
	c := &chunk{first: cs.First, info: infos[cs.Number], diedAt: cs.DiedAt, extents: cs.Extents}
	shape := c.info.Schema.Arrow()
	for _, e := range cs.Extents {
		b, err := d.batch(e, shape)
		if err != nil {
			return nil, err
		}
		c.pieces = append(c.pieces, piece{batch: b})
		c.rows += e.Rows
		c.bytes += logicalBytes(c.info.Schema, b)
		if c.rows > maxChunkRows {
			return nil, fmt.Errorf("%s at byte %d: a chunk of more than %d rows", dataName(e.File), e.Offset, maxChunkRows)
		}
	}
	var err error
	if c.deaths, err = decodeDeaths(cs.Deaths, c.rows); err != nil {
		return nil, err
	}
	for _, m := range cs.Marks {
		at, err := markOf(m)
		if err != nil {
			return nil, err
		}
		c.marks = append(c.marks, at)
	}
	if len(c.pieces) > fewPieces {
		c.join(0)
	}
	return c, nil
}

func (d *dataReader) batch(e extent, shape *arrow.Schema) (arrow.RecordBatch, error) {
	payload, err := d.frame(e)
	if err != nil {
		return nil, err
	}
	in := batchReader{payload: payload}
	b, err := in.batch(shape)
	if err == nil && b.NumRows() != e.Rows {
		err = fmt.Errorf("%d rows, expected %d", b.NumRows(), e.Rows)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at byte %d: %w", filepath.Join(d.dir, dataName(e.File)), e.Offset, err)
	}
	return b, nil
}

// frame reads a frame of a data file.
func (d *dataReader) frame(e extent) ([]byte, error) {
	f, ok := d.files[e.File]
	if !ok {
		var err error
		if f, err = os.Open(filepath.Join(d.dir, dataName(e.File))); err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		d.files[e.File], d.sizes[e.File] = f, info.Size()
	}
	payload, _, err := readFrame(f, e.Offset, d.sizes[e.File])
	if err != nil {
		return nil, fmt.Errorf("%s at byte %d: %w", f.Name(), e.Offset, err)
	}
	return payload, nil
}

func (d *dataReader) close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
