package localbq_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
)

var (
	models    = flag.Uint64("models", 20, "how many sequences TestWriteStreamsAgreeWithTheirModel goes through")
	modelSeed = flag.Uint64("model", 1, "the seed of the first of them")
)

// TestWriteStreamsAgreeWithTheirModel goes through seeded sequences of everything one can do with the write streams of a table,
// over connections that come and go and a service that is closed and opened again, and compares each answer, and every row that
// is visible, with a model of a few lines.
func TestWriteStreamsAgreeWithTheirModel(t *testing.T) {
	for seed := *modelSeed; seed < *modelSeed+*models; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := &streamModel{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir()}
			m.types = describe(t, "id int64", "note string")
			m.open()
			makeTable(t, m.bq, "d.t", column("id", "INTEGER", "REQUIRED"), column("note", "STRING"))
			for range 120 {
				m.step()
				if t.Failed() {
					t.Fatalf("after\n%s", strings.Join(m.done, "\n"))
				}
			}
			m.close()
		})
	}
}

// streamModel is what the service should be, and the service.
type streamModel struct {
	*testing.T
	*rand.Rand

	streams []*modelled
	visible []int // ids, in the order in which they became so
	nextID  int
	done    []string // what was done, for whoever reads a failure

	dir    string
	bq     *localbq.Instance
	client *storage.BigQueryWriteClient
	types  *rowType
}

// modelled is a created stream.
type modelled struct {
	kind                 storagepb.WriteStream_Type
	rows                 []int
	shown                int // of rows, from the front
	finalized, committed bool

	name string
	call *call // nil is none
}

func (m *streamModel) open() {
	bq, err := localbq.Start(context.Background(), localbq.Config{Dir: m.dir, AutoCreateDataset: true, Profile: localbq.FriendlyProfile()})
	if err != nil {
		m.Fatal(err)
	}
	m.bq, m.client = bq, writeClient(m, bq)
}

func (m *streamModel) close() {
	if err := errors.Join(m.client.Close(), m.bq.Close()); err != nil {
		m.Error(err)
	}
}

func (m *streamModel) log(format string, args ...any) {
	m.done = append(m.done, fmt.Sprintf(format, args...))
}

func (m *streamModel) step() {
	if len(m.streams) == 0 || m.IntN(12) == 0 {
		m.create()
		return
	}
	s := m.streams[m.IntN(len(m.streams))]
	switch n := m.IntN(40); {
	case n < 20:
		m.append(s)
	case n < 28:
		m.flush(s)
	case n < 30:
		m.finalize(s)
	case n < 32:
		m.commit()
	case n < 36:
		m.log("%s: reconnect", s.name)
		s.call = nil
	case n < 37:
		m.restart()
	default:
		m.compare()
	}
}

func (m *streamModel) create() {
	kind := createdTypes[m.IntN(len(createdTypes))]
	s, err := m.client.CreateWriteStream(m.Context(), &storagepb.CreateWriteStreamRequest{
		Parent: path("d.t"), WriteStream: &storagepb.WriteStream{Type: kind},
	})
	if err != nil {
		m.Fatal(err)
	}
	m.log("%s: made %s", s.GetName(), kind)
	m.streams = append(m.streams, &modelled{kind: kind, name: s.GetName()})
}

// append appends at, before or behind the end, or wherever that is, sometimes with a row that is none.
func (m *streamModel) append(s *modelled) {
	var texts []string
	var ids []int
	for range 1 + m.IntN(4) {
		ids = append(ids, m.nextID)
		texts = append(texts, fmt.Sprint("id: ", m.nextID))
		m.nextID++
	}
	bad := m.IntN(8) == 0
	if bad {
		texts[m.IntN(len(texts))] = `note: "a row without an id"`
	}
	q := m.types.first(m, s.name, texts...)
	offset, end := int64(-1), int64(len(s.rows))
	if m.IntN(3) > 0 {
		offset = max(0, end+[]int64{0, 0, 0, -1, -2, 1, 5}[m.IntN(7)])
		at(q, offset)
	}
	m.log("%s: append %v at %d, bad %v", s.name, ids, offset, bad)
	if s.call == nil {
		s.call = connect(m, m.client)
	}
	r := s.call.ask(q)
	code, detail := codes.OK, storagepb.StorageError_STORAGE_ERROR_CODE_UNSPECIFIED
	switch {
	case s.finalized:
		code, detail = codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED
	case offset >= 0 && offset < end:
		code, detail = codes.AlreadyExists, storagepb.StorageError_OFFSET_ALREADY_EXISTS
	case offset > end:
		code, detail = codes.OutOfRange, storagepb.StorageError_OFFSET_OUT_OF_RANGE
	case bad:
		code = codes.InvalidArgument
	default:
		s.rows = append(s.rows, ids...)
		if s.kind == storagepb.WriteStream_COMMITTED {
			m.show(s, len(s.rows))
		}
		if got := r.GetAppendResult().GetOffset(); got == nil || got.GetValue() != end {
			m.Errorf("answered offset %v, want %d", got, end)
		}
	}
	m.is(status.FromProto(r.GetError()), code, detail)
	if (len(r.GetRowErrors()) > 0) != (bad && code == codes.InvalidArgument && !s.finalized) {
		m.Errorf("row errors %v", r.GetRowErrors())
	}
}

// is compares a refusal.
func (m *streamModel) is(s *status.Status, code codes.Code, detail storagepb.StorageError_StorageErrorCode) {
	m.Helper()
	wantStatus(m, s, code, "")
	if detail != storagepb.StorageError_STORAGE_ERROR_CODE_UNSPECIFIED {
		if got := storageCode(m, s); got != detail {
			m.Errorf("detail %s, want %s", got, detail)
		}
	}
}

// show makes rows of a stream visible, up to a count of them.
func (m *streamModel) show(s *modelled, to int) {
	m.visible = append(m.visible, s.rows[s.shown:to]...)
	s.shown = to
}

func (m *streamModel) flush(s *modelled) {
	offset := int64(m.IntN(len(s.rows) + 3))
	m.log("%s: flush %d", s.name, offset)
	r, err := m.client.FlushRows(m.Context(), &storagepb.FlushRowsRequest{WriteStream: s.name, Offset: wrapperspb.Int64(offset)})
	code, detail := codes.OK, storagepb.StorageError_STORAGE_ERROR_CODE_UNSPECIFIED
	switch {
	case s.kind != storagepb.WriteStream_BUFFERED:
		code, detail = codes.InvalidArgument, storagepb.StorageError_INVALID_STREAM_TYPE
	case s.finalized:
		code, detail = codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED
	case offset < int64(s.shown):
		code = codes.AlreadyExists
	case offset >= int64(len(s.rows)):
		code = codes.OutOfRange
	default:
		m.show(s, int(offset)+1)
		if r.GetOffset() != offset {
			m.Errorf("answered offset %d", r.GetOffset())
		}
	}
	m.is(status.Convert(err), code, detail)
}

func (m *streamModel) finalize(s *modelled) {
	m.log("%s: finalize", s.name)
	s.finalized = true
	r, err := m.client.FinalizeWriteStream(m.Context(), &storagepb.FinalizeWriteStreamRequest{Name: s.name})
	if err != nil || r.GetRowCount() != int64(len(s.rows)) {
		m.Errorf("%d rows, %v, want %d", r.GetRowCount(), err, len(s.rows))
	}
}

// commit commits a few streams, all of them or none.
func (m *streamModel) commit() {
	var chosen []*modelled
	for _, s := range m.streams {
		if m.IntN(3) == 0 || s.finalized && s.kind == storagepb.WriteStream_PENDING && !s.committed {
			chosen = append(chosen, s)
		}
	}
	m.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:min(len(chosen), 1+m.IntN(3))]
	if len(chosen) == 0 {
		return
	}
	q := &storagepb.BatchCommitWriteStreamsRequest{Parent: path("d.t")}
	want := map[string]storagepb.StorageError_StorageErrorCode{}
	for _, s := range chosen {
		q.WriteStreams = append(q.WriteStreams, s.name)
		switch {
		case s.kind != storagepb.WriteStream_PENDING:
			want[s.name] = storagepb.StorageError_INVALID_STREAM_TYPE
		case s.committed:
			want[s.name] = storagepb.StorageError_STREAM_ALREADY_COMMITTED
		case !s.finalized:
			want[s.name] = storagepb.StorageError_INVALID_STREAM_STATE
		}
	}
	m.log("commit %v", q.GetWriteStreams())
	r, err := m.client.BatchCommitWriteStreams(m.Context(), q)
	if err != nil {
		m.Fatal(err)
	}
	got := map[string]storagepb.StorageError_StorageErrorCode{}
	for _, e := range r.GetStreamErrors() {
		got[e.GetEntity()] = e.GetCode()
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || (r.GetCommitTime() != nil) != (len(want) == 0) {
		m.Errorf("answered %v, want %v", r, want)
	}
	if len(want) > 0 {
		return
	}
	for _, s := range chosen {
		s.committed = true
		m.show(s, len(s.rows))
	}
}

func (m *streamModel) restart() {
	m.log("restart")
	m.close()
	m.open()
	for _, s := range m.streams {
		s.call = nil
	}
	m.compare()
}

// compare looks at every row, and at the log's account of them.
func (m *streamModel) compare() {
	var want []string
	for _, id := range m.visible {
		want = append(want, fmt.Sprint(id))
	}
	got, err := m.bq.Audit().ExactlyOnce("d.t", "id", slices.Clone(want))
	if err != nil || !got.OK() {
		m.Errorf("visible rows: %+v, %v", got, err)
	}
	if lost, err := m.bq.Audit().AckedNotVisible("d.t"); err != nil || len(lost) > 0 {
		m.Errorf("acknowledged and not visible: %v, %v", lost, err)
	}
	if left, err := m.bq.Audit().Unaccounted("d.t"); err != nil || len(left) > 0 {
		m.Errorf("unaccounted: %v, %v", left, err)
	}
}
