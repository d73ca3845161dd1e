package bigquery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

const (
	soakHot    = "hot"    // a table that is written to all the time, by all lanes
	soakFallow = "fallow" // one that is written to for the first quarter, and again once it was deleted
)

// soakSource gives documents at a steady rate until a deadline. Each split walks round a ring of tables of its own, a few at a
// time.
type soakSource struct {
	plan     soakPlan
	deadline time.Time
	drifted  atomic.Bool // documents for some tables have another field
	dropped  atomic.Bool // the fallow table was deleted

	mu   sync.Mutex // guards what follows
	at   [soakLanes]int64
	ends [soakLanes]int64 // where each split ended
}

func newSoakSource(p soakPlan, deadline time.Time) *soakSource {
	return &soakSource{plan: p, deadline: deadline}
}

func (s *soakSource) Bounded() bool { return true }

func (s *soakSource) NewEnumerator(_ context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e := &soakSplits{}
	if ec.State == nil {
		for i := range soakLanes {
			e.left = append(e.left, stream.Split{ID: strconv.Itoa(i)})
		}
		return e, nil
	}
	for id := range strings.FieldsSeq(string(ec.State)) {
		e.left = append(e.left, stream.Split{ID: id})
	}
	return e, nil
}

func (s *soakSource) NewReader(context.Context, stream.ReaderContext) (stream.Reader[[]byte], error) {
	return &soakReader{source: s}, nil
}

// read is how many documents were given, as of the splits' ends.
func (s *soakSource) read() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.ends {
		n += end
	}
	return n
}

// steps is at which table of its ring a split begins, at a position.
func (s *soakSource) step(at int64) int64 {
	ring := int64(s.plan.destinations / soakLanes)
	perStep := max(1, int64(float64(s.plan.rate)*s.plan.pass.Seconds())/ring)
	return at / perStep
}

// table is where the document at a position of a split goes.
func (s *soakSource) table(split int, at int64) string {
	switch {
	case at%10 == 0:
		return soakHot
	case at%50 == 25 && (at < s.quarter() || s.dropped.Load()):
		return soakFallow
	}
	ring := int64(s.plan.destinations / soakLanes)
	n := (s.step(at) + at%int64(s.plan.active)) % ring
	return fmt.Sprintf("t%d", n*soakLanes+int64(split))
}

// quarter is a split's position after a quarter of the time.
func (s *soakSource) quarter() int64 {
	return int64(float64(s.plan.rate) * s.plan.length.Seconds() / 4)
}

// fallow reports whether no split has documents for the fallow table any more.
func (s *soakSource) fallow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Min(s.at[:]) > s.quarter()
}

// document is the document at a position of a split.
func (s *soakSource) document(split int, at int64) []byte {
	switch {
	case at%499 == 498:
		return []byte("skip")
	case at%997 == 996:
		return fmt.Appendf(nil, `{"id":"no number","event":%q}`, s.table(split, at))
	case at%2003 == 2002:
		return fmt.Appendf(nil, soakRefused+`%q}`, s.table(split, at))
	}
	name := s.table(split, at)
	doc := fmt.Appendf(nil, `{"id":%d,"event":%q,"pad":%q`, at*soakLanes+int64(split), name, soakPad)
	if soakDrifts(name) && s.drifted.Load() {
		doc = append(doc, `,"late":"l"`...)
	}
	return append(doc, '}')
}

// soakRefused begins a document whose row lacks a column that has to be there, which only the service notices.
const soakRefused = `{"event":`

var soakPad = strings.Repeat("p", 150)

// soakDrifts reports whether the rows of a table change: of one in a hundred.
func soakDrifts(name string) bool { return name == "t7" || strings.HasSuffix(name, "07") }

// soakSplits hands out one split for each lane.
type soakSplits struct{ left []stream.Split }

func (e *soakSplits) Next(int) (stream.Split, error) {
	if len(e.left) == 0 {
		return stream.Split{}, io.EOF
	}
	s := e.left[0]
	e.left = e.left[1:]
	return s, nil
}

func (e *soakSplits) Return(_ int, splits []stream.Split) { e.left = append(e.left, splits...) }

func (e *soakSplits) Snapshot() ([]byte, error) {
	var ids []string
	for _, s := range e.left {
		ids = append(ids, s.ID)
	}
	return []byte(strings.Join(ids, " ")), nil
}

func (*soakSplits) Close() error { return nil }

// soakReader reads one split as fast as the plan says.
type soakReader struct {
	source *soakSource
	split  int
	id     string
	at     int64
	from   int64 // position that it was opened at
	opened time.Time
}

func (r *soakReader) Open(_ context.Context, s stream.Split) (err error) {
	r.id, r.at, r.from, r.opened = s.ID, s.Position, s.Position, time.Now()
	r.split, err = strconv.Atoi(s.ID)
	return err
}

func (r *soakReader) Fetch(ctx context.Context, b *stream.Batch[[]byte]) error {
	b.Reset()
	for {
		now := time.Now()
		due := r.from + int64(now.Sub(r.opened).Seconds()*float64(r.source.plan.rate))
		switch {
		case now.After(r.source.deadline):
			r.note(true)
			return io.EOF
		case due > r.at:
			for range min(due-r.at, 500) {
				b.Row(r.at, r.at+1)
				b.Emit(stream.Record[[]byte]{Value: r.source.document(r.split, r.at), At: stream.Position{Split: r.id, Row: r.at}})
				r.at++
			}
			r.note(false)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// note tells the source how far the split is.
func (r *soakReader) note(end bool) {
	r.source.mu.Lock()
	defer r.source.mu.Unlock()
	r.source.at[r.split] = r.at
	if end {
		r.source.ends[r.split] = r.at
	}
}

func (*soakReader) Close() error { return nil }

// soakTemplate routes documents to the tables of a dataset.
func soakTemplate(t testing.TB, dataset string) Resolver[[]byte] {
	t.Helper()
	to, err := AppendTemplate("p."+dataset+".{event}", func(buf, doc []byte, name string) ([]byte, error) {
		if string(doc) == "skip" {
			return append(buf, soakHot...), nil
		}
		return jsonrow.AppendField(buf, doc, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// soakRows makes rows of documents; those of some tables have another column once the documents do.
type soakRows struct {
	early, late eventRows
	source      *soakSource
}

func newSoakRows(t testing.TB, source *soakSource) *soakRows {
	t.Helper()
	rows := func(names ...string) eventRows {
		s, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(columnsOf(names...)), jsonrow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return eventRows{s}
	}
	return &soakRows{rows("id!", "event", "pad"), rows("id!", "event", "pad", "late"), source}
}

func (r *soakRows) of(dst table.Destination) (eventRows, uint64) {
	if soakDrifts(dst.Table) && r.source.drifted.Load() {
		return r.late, 2
	}
	return r.early, 1
}

func (r *soakRows) Schema(dst table.Destination) (*table.Schema, error) {
	rows, _ := r.of(dst)
	return rows.Schema(dst)
}

func (r *soakRows) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	rows, _ := r.of(dst)
	return rows.Descriptor(dst)
}

func (r *soakRows) Fingerprint(dst table.Destination) uint64 {
	_, fingerprint := r.of(dst)
	return fingerprint
}

func (r *soakRows) AppendRow(buf []byte, dst table.Destination, doc []byte) ([]byte, error) {
	if bytes.HasPrefix(doc, []byte(soakRefused)) {
		return buf, nil
	}
	rows, _ := r.of(dst)
	return rows.AppendRow(buf, dst, doc)
}

var _ row.Serializer[[]byte] = (*soakRows)(nil)
