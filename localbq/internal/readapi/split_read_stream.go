package readapi

import (
	"context"
	"math"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
)

// SplitReadStream cuts a stream in two that give the same rows back to back; the stream itself stays readable. A stream
// that cannot be cut there is answered without names.
func (s *Server) SplitReadStream(ctx context.Context, r *storagepb.SplitReadStreamRequest) (*storagepb.SplitReadStreamResponse, error) {
	if !(r.Fraction > 0 && r.Fraction < 1) {
		return nil, invalid("fraction must be above 0 and below 1, got %v", r.Fraction)
	}
	st, err := s.sessions.find(r.Name)
	if err != nil {
		return nil, err
	}
	if err := st.resolve(ctx); err != nil {
		return nil, err
	}
	at := int64(math.Round(r.Fraction * float64(st.rows)))
	if at <= 0 || at >= st.rows {
		return &storagepb.SplitReadStreamResponse{}, nil
	}
	primary, remainder := st.part(0, at), st.part(at, st.rows)
	s.sessions.add(st.session, primary, remainder)
	return &storagepb.SplitReadStreamResponse{
		PrimaryStream:   &storagepb.ReadStream{Name: primary.name},
		RemainderStream: &storagepb.ReadStream{Name: remainder.name},
	}, nil
}

// part is a new stream of some rows of a resolved one.
func (st *stream) part(from, to int64) *stream {
	out := &stream{name: streamName(st.session.name), session: st.session, resolved: true, rows: to - from}
	for _, r := range st.runs {
		low, high := max(from, 0), min(to, r.rows)
		if low < high {
			out.runs = append(out.runs, r.slice(low, high))
		}
		from, to = from-r.rows, to-r.rows
	}
	return out
}

func (r run) slice(from, to int64) run {
	if r.picked != nil {
		return run{batch: r.batch, picked: r.picked[from:to], rows: to - from}
	}
	return run{first: r.first + from, batch: r.batch.NewSlice(from, to), rows: to - from}
}
