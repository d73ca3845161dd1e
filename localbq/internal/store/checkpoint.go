package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// A checkpoint lets the log begin anew. It is one frame of JSON: the catalog, and for each table its chunks with the places
// of their rows in data files. Rows are written to data files once; a chunk that has grown since the last checkpoint gets
// another extent.

const (
	checkpointMagic = "millchk1"
	dataMagic       = "milldat1"
)

// extent is a run of a chunk's rows on disk: one frame of a data file.
type extent struct {
	File   int   `json:"file"`
	Offset int64 `json:"offset"`
	Rows   int64 `json:"rows"`
}

type checkpointState struct {
	Version  int64          `json:"version"`
	Datasets []datasetState `json:"datasets"`
	Jobs     []Job          `json:"jobs,omitempty"`
}

type datasetState struct {
	Dataset *Dataset     `json:"dataset"`
	Tables  []tableState `json:"tables"`
}

type tableState struct {
	Instance int64         `json:"instance"`
	Infos    []*Info       `json:"infos"`
	Mode     Mode          `json:"mode,omitempty"`
	Rows     int64         `json:"rows,omitempty"`
	Dead     int64         `json:"dead,omitempty"`
	Killed   int64         `json:"killed,omitempty"`
	Gone     []Range       `json:"gone,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Touched  int64         `json:"touched,omitempty"`
	Chunks   []chunkState  `json:"chunks,omitempty"`
	Streams  []streamState `json:"streams,omitempty"`
	// Changes is nil for a table that never had any.
	Changes *changesState `json:"changes,omitempty"`
}

// streamState is a created stream. Its chunks hold the rows that are not visible yet.
type streamState struct {
	Key       int64        `json:"key"`
	ID        string       `json:"id"`
	Kind      StreamKind   `json:"kind"`
	End       int64        `json:"end,omitempty"`
	Last      int64        `json:"last,omitempty"`
	Cursor    int64        `json:"cursor,omitempty"`
	Touched   int64        `json:"touched"`
	Finalized bool         `json:"finalized,omitempty"`
	Committed int64        `json:"committed,omitempty"`
	Chunks    []chunkState `json:"chunks,omitempty"`
}

type chunkState struct {
	First   int64     `json:"first"`
	Number  int       `json:"number"` // of the definition
	Marks   [][]int64 `json:"marks"`  // version, rows and, where it is not 0, ingested
	DiedAt  int64     `json:"diedAt,omitempty"`
	Deaths  []byte    `json:"deaths,omitempty"`
	Extents []extent  `json:"extents"`

	chunk   *chunk  // the chunk itself
	pending []piece // its pieces, until their rows are on disk
	rows    int64
}

// checkpoint writes everything committed so far to the folder and starts the log anew. Commits go on meanwhile. Checkpoints
// take turns: the goroutine of tend makes them, and Close behind it.
func (s *Store) checkpoint() error {
	state, segment, err := s.rotate()
	if err != nil {
		return err
	}
	number := s.manifest.Checkpoint + 1
	if err := s.writeData(state, number); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if s.options.Trimming != nil {
		if err := s.options.Trimming(); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	if err := writeState(filepath.Join(s.options.Dir, checkpointName(number)), state); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	next := manifest{Format: manifestFormat, Checkpoint: number, Log: segment}
	if err := next.write(s.options.Dir); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.manifest = next
	state.settle()
	return next.sweep(s.options.Dir, state.references())
}

// rotate captures the state between two commits and starts the segment that follows it.
func (s *Store) rotate() (*checkpointState, int, error) {
	s.committing.Lock()
	defer s.committing.Unlock()
	if s.broken != nil {
		return nil, 0, s.broken
	}
	if err := s.log.rotate(); err != nil {
		s.broken = fmt.Errorf("store log: %w", err)
		return nil, 0, s.broken
	}
	return s.capture(), s.log.number, nil
}

// capture describes the store as it is. It copies lists, never rows.
func (s *Store) capture() *checkpointState {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	state := &checkpointState{Version: s.assigned, Jobs: slices.Collect(maps.Values(s.jobs))}
	for _, e := range s.datasets {
		d := datasetState{Dataset: e.dataset}
		for _, t := range e.tables {
			d.Tables = append(d.Tables, t.capture(s.horizon()))
		}
		state.Datasets = append(state.Datasets, d)
	}
	return state
}

// timeTravel is the longest time that a dataset lets readers go back.
const timeTravel = 168 * time.Hour

// horizon is the version that time travel cannot go behind.
func (s *Store) horizon() int64 { return s.clock.Now().Add(-timeTravel).UnixMicro() }

func (t *Table) capture(horizon int64) tableState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(horizon)
	state := tableState{
		Instance: t.instance, Infos: t.infos, Mode: t.mode, Rows: t.rows, Dead: t.dead, Bytes: t.bytes, Touched: t.touched,
		Killed: t.killed, Gone: t.gone, Changes: t.changes.capture(),
	}
	state.Chunks = captureChunks(t.chunks)
	t.expire()
	for _, s := range t.streams {
		state.Streams = append(state.Streams, streamState{
			Key: s.key, ID: s.id, Kind: s.kind, End: s.end, Last: s.last, Cursor: s.cursor, Touched: s.touched,
			Finalized: s.finalized, Committed: s.committed, Chunks: captureChunks(s.chunks),
		})
	}
	return state
}

func captureChunks(chunks []*chunk) (out []chunkState) {
	for _, c := range chunks {
		cs := chunkState{
			First: c.first, Number: c.info.Number, DiedAt: c.diedAt, chunk: c, rows: c.rows, pending: c.pieces,
			Extents: c.extents[:len(c.extents):len(c.extents)], Deaths: c.deaths.encode(),
		}
		for _, m := range c.marks {
			cs.Marks = append(cs.Marks, m.durable())
		}
		out = append(out, cs)
	}
	return out
}

// durable is a mark as numbers.
func (m mark) durable() []int64 {
	if m.ingested == 0 {
		return []int64{m.version, m.rows}
	}
	return []int64{m.version, m.rows, m.ingested}
}

func markOf(numbers []int64) (m mark, err error) {
	switch len(numbers) {
	case 3:
		m.ingested = numbers[2]
		fallthrough
	case 2:
		m.version, m.rows = numbers[0], numbers[1]
		return m, nil
	}
	return m, fmt.Errorf("a mark of %d numbers", len(numbers))
}

// forget drops the chunks that nobody can read any more.
func (t *Table) forget(horizon int64) {
	horizon = t.forgetWaits(horizon)
	kept := t.chunks[:0:0]
	for _, c := range t.chunks {
		switch {
		case c.diedAt != 0 && c.diedAt <= horizon:
		case c.diedAt == 0 && c.deaths.rows == c.rows && c.deaths.last <= horizon:
			t.gone = extend(t.gone, c.first, c.rows)
		default:
			kept = append(kept, c)
		}
	}
	t.chunks = kept
}

// forgetWaits drops what nobody can go back to, and answers how far back the base still reads.
func (t *Table) forgetWaits(horizon int64) int64 {
	t.settle(t.store.Version())
	kept := t.changes.waits[:0:0]
	for _, w := range t.changes.waits {
		if w.until == 0 || w.until > horizon {
			kept = append(kept, w)
			horizon = min(horizon, w.from-1)
		}
	}
	t.changes.waits = kept
	return horizon
}

// each visits the chunks of all tables and streams.
func (s *checkpointState) each(f func(c *chunkState) error) error {
	for i := range s.Datasets {
		for j := range s.Datasets[i].Tables {
			t := &s.Datasets[i].Tables[j]
			lists := [][]chunkState{t.Chunks}
			for k := range t.Streams {
				lists = append(lists, t.Streams[k].Chunks)
			}
			for _, chunks := range lists {
				for k := range chunks {
					if err := f(&chunks[k]); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// eachIndex visits what the tables know of changes.
func (s *checkpointState) eachIndex(f func(c *changesState) error) error {
	for i := range s.Datasets {
		for j := range s.Datasets[i].Tables {
			if c := s.Datasets[i].Tables[j].Changes; c != nil {
				if err := f(c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeData writes the rows that no data file has yet to one of that number.
func (s *Store) writeData(state *checkpointState, number int) error {
	f, err := os.OpenFile(filepath.Join(s.options.Dir, dataName(number)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	w := &dataWriter{file: f, number: number, at: magicBytes}
	_, err = io.WriteString(f, dataMagic)
	if err == nil {
		err = state.each(w.chunk)
	}
	if err == nil {
		err = state.eachIndex(w.index)
	}
	return errors.Join(err, f.Sync(), f.Close(), syncDir(s.options.Dir))
}

type dataWriter struct {
	file   *os.File
	number int
	at     int64
	buf    []byte
}

// chunk writes the rows of a chunk that its extents leave over.
func (w *dataWriter) chunk(c *chunkState) error {
	done := int64(0)
	for _, e := range c.Extents {
		done += e.Rows
	}
	var batches []arrow.RecordBatch
	at := int64(0)
	for _, p := range c.pending {
		n := p.batch.NumRows()
		switch {
		case at >= done:
			batches = append(batches, p.batch)
		case at+n > done:
			batches = append(batches, p.batch.NewSlice(done-at, n))
		}
		at += n
	}
	c.pending = nil
	if len(batches) == 0 {
		return nil
	}
	buf, start := beginFrame(w.buf[:0])
	buf = endFrame(appendBatch(buf, Concatenate(batches)), start)
	if _, err := w.file.Write(buf); err != nil {
		return err
	}
	c.Extents = append(c.Extents, extent{File: w.number, Offset: w.at, Rows: c.rows - done})
	w.at += int64(len(buf))
	w.buf = buf
	return nil
}

func writeState(path string, state *checkpointState) error {
	payload, err := json.Marshal(state)
	if err != nil {
		return err
	}
	buf, start := beginFrame([]byte(checkpointMagic))
	return writeFile(path, endFrame(append(buf, payload...), start))
}

// settle tells the chunks where their rows are.
func (s *checkpointState) settle() {
	_ = s.each(func(c *chunkState) error {
		c.chunk.extents = c.Extents // only checkpoints look at it, and they take turns
		return nil
	})
}

// references reports which data files hold rows of the state.
func (s *checkpointState) references() func(data int) bool {
	used := map[int]bool{}
	_ = s.each(func(c *chunkState) error {
		for _, e := range c.Extents {
			used[e.File] = true
		}
		return nil
	})
	_ = s.eachIndex(func(c *changesState) error {
		for _, e := range c.Index {
			used[e.File] = true
		}
		return nil
	})
	return func(data int) bool { return used[data] }
}
