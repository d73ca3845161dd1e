package readapi

import (
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
)

// ReadRows sends the rows of a stream from an offset on, which counts rows after the restriction. A stream may be read any
// number of times, also at once.
func (s *Server) ReadRows(r *storagepb.ReadRowsRequest, out storagepb.BigQueryRead_ReadRowsServer) error {
	if r.Offset < 0 {
		return invalid("offset must not be negative, got %d", r.Offset)
	}
	st, err := s.sessions.find(r.ReadStream)
	if err != nil {
		return err
	}
	if err := st.resolve(out.Context()); err != nil {
		return err
	}
	c, err := st.seek(r.Offset)
	if err != nil {
		return err
	}
	for first := true; c.done < st.rows; first = false {
		response := &storagepb.ReadRowsResponse{
			Stats:         &storagepb.StreamStats{Progress: &storagepb.StreamStats_Progress{AtResponseStart: st.progress(c.done)}},
			ThrottleState: &storagepb.ThrottleState{},
		}
		if first {
			st.session.format.first(response)
		}
		if err := st.session.format.block(response, c, s.Limits); err != nil {
			return err
		}
		response.Stats.Progress.AtResponseEnd = st.progress(c.done)
		if err := out.Send(response); err != nil {
			return err
		}
	}
	return nil
}

func (st *stream) progress(rows int64) float64 { return float64(rows) / float64(st.rows) }
