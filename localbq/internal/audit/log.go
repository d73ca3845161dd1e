package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// Options say where a log keeps its records. Zero values mean: in memory, with row digests, at most 256 MiB.
type Options struct {
	Clock clock.Clock
	// Path is the file of records; "" is none.
	Path string
	// MaxBytes bounds the memory of complete records, about; 0 is 256 MiB.
	MaxBytes int64
	// CountsOnly drops digests of rows, and of the requests that carry them.
	CountsOnly bool
}

// Log is the audit log. Safe for concurrent use.
type Log struct {
	options Options

	mu      sync.Mutex // guards the fields below
	seq     int64      // of the last record
	lasting []*Record  // by Seq: those of calls that have outlasted all that memory has room for, not complete as yet
	records []*Record  // by Seq, without gaps; the first is number first
	first   int64
	bytes   int64
	dropped int64 // complete records that neither memory nor a file holds any more
	file    *os.File
	written int64             // bytes of the file that are whole lines
	seen    map[effectAt]bool // of the records that the file holds from earlier processes
	failed  error             // why the file takes no more
}

// effectAt names what happened at a version of the store.
type effectAt struct {
	effect Effect
	after  int64
}

// Open makes a log. A file that is there already is gone on with: a torn last line is cut off.
func Open(o Options) (*Log, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	l := &Log{options: o, first: 1}
	if o.Path == "" {
		return l, nil
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return l, nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.options.Path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	l.file, l.seen = file, map[effectAt]bool{}
	damaged, err := readLines(file, func(r *Record, size int64) {
		l.seq = max(l.seq, r.Seq)
		l.written += size
		if r.Effect != None {
			l.seen[effectAt{r.Effect, r.After}] = true
		}
	})
	if err == nil && damaged {
		err = fmt.Errorf("%s is damaged at byte %d, and not by a process that was killed: put a copy of it in its place, or cut it there "+
			"and lose the records behind that", l.options.Path, l.written)
	}
	if err == nil {
		err = file.Truncate(l.written)
	}
	if err == nil {
		_, err = file.Seek(l.written, io.SeekStart)
	}
	l.first = l.seq + 1
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// readLines reads records up to the first line that is none. One that a killed process left has no end, and one that the end
// of the machine left has zeros in it; any other is damaged.
func readLines(r io.Reader, each func(r *Record, size int64)) (damaged bool, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		record := &Record{}
		if json.Unmarshal(line, record) != nil {
			return bytes.IndexByte(line, 0) < 0, nil
		}
		each(record, int64(len(line)))
	}
}

// Begin opens a record and gives it its place in the order. Only the fields that say what was asked are taken from r.
func (l *Log) Begin(r Record) *Event {
	now, wall := l.options.Clock.Now(), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	r.Seq, r.Time, r.Wall, r.Fate = l.seq, now.UTC(), wall.UTC(), Pending
	if r.Effect == "" {
		r.Effect = None
	}
	if l.options.CountsOnly {
		r.Digests = nil
	}
	e := &Event{log: l, record: &r}
	l.records = append(l.records, e.record)
	return e
}

// Digests reports whether records are to carry digests of rows and of the requests that carry them.
func (l *Log) Digests() bool { return !l.options.CountsOnly }

// Event is a record that is being written.
type Event struct {
	log    *Log
	record *Record
}

// Note is the gist of the record as bytes for the store's log, from which Recovered makes the record again.
func (e *Event) Note() []byte {
	if e.log.file == nil {
		return nil
	}
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	b, err := json.Marshal(e.record)
	if err != nil { // a Record always marshals
		panic(fmt.Sprintf("audit: %v", err))
	}
	return b
}

// Update changes the record, which others may read at any time but during the call.
func (e *Event) Update(change func(*Record)) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	change(e.record)
}

// Sending says that the answer is about to leave: a client that has it finds it so in the log.
func (e *Event) Sending() { e.Update(func(r *Record) { r.Fate = Sent }) }

// Done completes the record.
func (e *Event) Done(fate Fate) {
	l := e.log
	l.mu.Lock()
	defer l.mu.Unlock()
	e.record.Fate, e.record.done = fate, true
	if l.file != nil {
		l.write(e.record)
	}
	if e.record.Seq >= l.first {
		l.bytes += e.record.size()
	} else {
		l.lasting = slices.DeleteFunc(l.lasting, func(r *Record) bool { return r == e.record })
		l.lose()
	}
	l.trim()
}

// size is about what a record takes in memory.
func (r *Record) size() int64 {
	return 400 + int64(8*len(r.Digests)+len(r.Stream)+len(r.Table)+len(r.Detail)+len(r.Note)+16*len(r.Removed))
}

// write adds a line to the file; l.mu is held.
func (l *Log) write(r *Record) {
	if l.failed != nil {
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		line = append(line, '\n')
		_, err = l.file.Write(line)
	}
	if err != nil {
		l.failed = fmt.Errorf("audit log: %w", err)
		return
	}
	l.written += int64(len(line))
}

// trim forgets the oldest complete records while there are too many; l.mu is held. One that is not complete is set aside, so
// that a call which lasts, of a slow reader say, does not keep all that comes behind it.
func (l *Log) trim() {
	for l.bytes > l.options.MaxBytes && len(l.records) > 0 {
		if r := l.records[0]; r.done {
			l.bytes -= r.size()
			l.lose()
		} else {
			l.lasting = append(l.lasting, r)
		}
		l.records[0] = nil
		l.records = l.records[1:]
		l.first++
	}
}

// lose counts a record that memory has forgotten, unless the file has it; l.mu is held.
func (l *Log) lose() {
	if l.file == nil || l.failed != nil {
		l.dropped++
	}
}

// Recovered adds the record of rows that the store found in its log, unless an earlier process has written it down. note is
// what Event.Note gave, or nil; r says which rows became visible, or were removed.
func (l *Log) Recovered(note []byte, r Record) error {
	l.mu.Lock()
	known := l.seen[effectAt{r.Effect, r.After}]
	l.mu.Unlock()
	if known {
		return nil
	}
	asked := r
	asked.Time, asked.Wall = l.options.Clock.Now().UTC(), time.Now().UTC()
	if note != nil {
		if err := json.Unmarshal(note, &asked); err != nil {
			return fmt.Errorf("audit log: note of version %d: %w", r.After, err)
		}
	}
	asked.RPC = cmp.Or(asked.RPC, "write")
	at, wall := asked.Time, asked.Wall
	e := l.Begin(asked)
	e.Update(func(record *Record) {
		record.Time, record.Wall, record.Note = at, wall, "recovered"
		record.Effect, record.Table, record.Instance = r.Effect, r.Table, r.Instance
		record.First, record.Count, record.Before, record.After = r.First, r.Count, r.Before, r.After
		record.At, record.Shown = r.At, r.Shown
		record.Removed = r.Removed
	})
	e.Done(Lost)
	return nil
}

// Flush writes the open records with visible rows to the file as they are, so that the store may forget their notes. They
// are written again when they are complete; of two lines with one number the later one counts.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	for _, r := range slices.Concat(l.lasting, l.records) {
		if !r.done && r.Effect != None {
			l.write(r)
		}
	}
	return errors.Join(l.failed, l.file.Sync())
}

// Close gives the file back.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.Flush(), l.file.Close())
}

// Dropped is how many records the log has lost to its bounds.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Records are the records so far, in order of Seq, open ones as they are now. The iteration ends at the first error.
func (l *Log) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		past, present, err := l.snapshot()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, r := range merged(past, present) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// merged puts records into the order of Seq. What memory has of a record is newer than what the file has.
func merged(past, present []*Record) []*Record {
	all := append(past, present...)
	slices.SortStableFunc(all, func(a, b *Record) int { return cmp.Compare(a.Seq, b.Seq) })
	out := all[:0]
	for i, r := range all {
		if i == len(all)-1 || all[i+1].Seq != r.Seq {
			out = append(out, r)
		}
	}
	return out
}

// snapshot copies the records that memory holds and reads the older ones from the file.
func (l *Log) snapshot() (past, present []*Record, err error) {
	l.mu.Lock()
	first, written, failed := l.first, l.written, l.failed
	for _, r := range slices.Concat(l.lasting, l.records) {
		c := *r
		present = append(present, &c)
	}
	l.mu.Unlock()
	if l.file == nil || first == 1 {
		return nil, present, failed
	}
	past, err = older(io.NewSectionReader(l.file, 0, written), first)
	return past, present, errors.Join(failed, err)
}

// older reads the records from before memory begins, whose lines are all written. The last line of a number counts; one that
// is not complete is of a process that was killed.
func older(file io.Reader, first int64) ([]*Record, error) {
	byNumber := map[int64]*Record{}
	_, err := readLines(file, func(r *Record, _ int64) {
		if r.Seq < first {
			byNumber[r.Seq] = r
		}
	})
	out := make([]*Record, 0, len(byNumber))
	for _, seq := range slices.Sorted(maps.Keys(byNumber)) {
		r := byNumber[seq]
		if r.Fate == Pending {
			r.Fate = Lost
		}
		out = append(out, r)
	}
	return out, err
}

// WriteTo exports the records as JSON lines.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	total := int64(0)
	for r, err := range l.Records() {
		if err != nil {
			return total, err
		}
		line, err := json.Marshal(r)
		if err != nil {
			return total, err
		}
		n, err := out.Write(append(bytes.TrimSpace(line), '\n'))
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, out.Flush()
}
