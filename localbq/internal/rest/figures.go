package rest

import (
	"math/rand/v2"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// addFigures writes a table's size. Behind Profile.Windows.NumRows it is the size of some time ago, and what came since then
// stands in the streaming buffer, so that the two together are the rows that queries see.
func (s *Server) addFigures(r *bqapi.Table, t *store.Table, stats store.Stats) {
	settled := stats
	if at, trails := s.trailsBy(t, s.Profile.Windows.NumRows, storm.NumRows); trails {
		settled = s.trailing(t, stats, at)
	}
	r.NumRows, r.NumBytes = uint64(settled.Rows), settled.Bytes
	r.NumTotalLogicalBytes, r.NumActiveLogicalBytes = settled.Bytes, settled.Bytes
	r.ForceSendFields = append(r.ForceSendFields, "NumRows", "NumBytes", "NumLongTermBytes", "NumTotalLogicalBytes",
		"NumActiveLogicalBytes", "NumLongTermLogicalBytes")
	if settled.Rows < stats.Rows {
		r.StreamingBuffer = &bqapi.Streamingbuffer{
			EstimatedRows:   uint64(stats.Rows - settled.Rows),
			EstimatedBytes:  uint64(max(stats.Bytes-settled.Bytes, 0)),
			OldestEntryTime: uint64(oldestAfter(t, s.Clock.Now(), settled.Modified).UnixMilli()),
		}
	}
}

// trailsBy is the instant that something of a table is known as of, where a window or a fault rule keeps it behind.
func (s *Server) trailsBy(t *store.Table, w profile.Window, held string) (at time.Time, trails bool) {
	length := w.Draw(rand.New(rand.NewPCG(s.Seed, uint64(t.Instance()))))
	at = s.Clock.Now().Add(-length)
	if from, _, on := s.Storms.On(held, t.Instance()); on && from.Before(at) {
		return from, true
	} else if on {
		return at, true
	}
	return at, length > 0
}

// trailing are the figures as of an instant, which Modified is then. A table that keeps no rows knows today's only.
func (s *Server) trailing(t *store.Table, stats store.Stats, at time.Time) store.Stats {
	if at.UnixMicro() < t.Instance() {
		return store.Stats{Modified: at}
	}
	snapshot, err := t.SnapshotAt(at)
	if err != nil {
		return stats
	}
	old := store.Stats{Rows: snapshot.NumRows(), Modified: at}
	for _, p := range snapshot.Parts() {
		for i, f := range snapshot.Info.Schema.Fields {
			old.Bytes += store.LogicalBytes(f, p.Batch.Column(i))
		}
	}
	return old
}

// oldestAfter is when the first of the rows that came after an instant did.
func oldestAfter(t *store.Table, now, at time.Time) time.Time {
	oldest := now
	snapshot, err := t.Snapshot()
	if err != nil {
		return oldest
	}
	for _, p := range snapshot.Parts() {
		for _, ids := range p.Ranges() {
			for _, run := range t.Ingested(ids.First, ids.Count) {
				if came := store.TimeOf(run.Version); came.After(at) && came.Before(oldest) {
					oldest = came
				}
			}
		}
	}
	return oldest
}
