package audit

import (
	"cmp"
	"slices"
	"time"
)

// Commit is a time at which rows of a created stream became visible.
type Commit struct {
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	RPC     string    `json:"rpc"`    // FlushRows, BatchCommitWriteStreams; AppendRows for a COMMITTED stream
	Offset  int64     `json:"offset"` // of the first row in the stream
	Count   int64     `json:"count"`
	First   int64     `json:"first"`   // id of the first row in the table
	Version int64     `json:"version"` // of the table behind it
	Acked   bool      `json:"acked"`   // the client was told
}

// Commits are the times at which rows of a stream became visible, in order. A commit of a stream without rows counts.
func (l *Log) Commits(stream string) ([]Commit, error) {
	var out []Commit
	for r, err := range l.Records() {
		if err != nil {
			return nil, err
		}
		c := Commit{Seq: r.Seq, Time: r.Time, RPC: r.RPC, First: r.First, Version: r.After, Acked: r.Acked()}
		if r.Effect == Visible && r.At != nil && r.Stream == stream {
			c.Offset, c.Count = *r.At, r.Count
			out = append(out, c)
		}
		for _, s := range r.Shown {
			if s.Stream == stream {
				c.Offset, c.Count = s.Offset, s.Count
				out = append(out, c)
			}
			c.First += s.Count
		}
	}
	slices.SortStableFunc(out, func(a, b Commit) int { return cmp.Compare(a.Version, b.Version) })
	return out, nil
}

// Gaps are the offsets below end that no append to the stream accounts for. There are none while the log is whole.
func (l *Log) Gaps(stream string, end int64) ([]Range, error) {
	var appends []Range
	for r, err := range l.Records() {
		if err != nil {
			return nil, err
		}
		if r.At != nil && r.Stream == stream {
			appends = append(appends, Range{*r.At, r.Count})
		}
	}
	slices.SortFunc(appends, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var out []Range
	next := int64(0)
	for _, a := range append(appends, Range{First: end}) {
		if a.First > next {
			out = append(out, Range{next, a.First - next})
		}
		next = max(next, a.First+a.Count)
	}
	return out, nil
}
