package readapi

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// maxStreams is how many streams a session has at most (storage.proto, CreateReadSessionRequest.max_stream_count).
const maxStreams = 1000

// wanted is what a request says about the number of streams. Zero is no wish.
type wanted struct{ most, preferred int64 }

// streamCount is the number of streams for selected bytes: one up to splitBytes, above that one for each 66/240 of it, which
// are the figures of Limits.SplitBytes. A cap lowers it; a preference raises it to four times at most; a small table is
// never split.
func streamCount(bytes, splitBytes int64, w wanted) int64 {
	if bytes <= splitBytes {
		return 1
	}
	perStream := max(1, splitBytes/240*66)
	if splitBytes < 240 {
		perStream = max(1, splitBytes*66/240)
	}
	n := min(max(2, bytes/perStream), maxStreams)
	if w.preferred > n {
		n = min(w.preferred, 4*n, maxStreams)
	}
	if w.most > 0 {
		n = min(n, w.most)
	}
	return n
}

// selectedBytes is what BigQuery counts for the chosen columns of each part of a snapshot.
func selectedBytes(parts []store.Part, p *projection.Projection) []int64 {
	out := make([]int64, len(parts))
	for i, part := range parts {
		b := p.Apply(part.Batch)
		for j, f := range p.Schema.Fields {
			out[i] += store.LogicalBytes(f, b.Column(j))
		}
	}
	return out
}

// cut deals the rows of a snapshot out to n streams, in order and by bytes, rows of one part counting alike. Streams that
// would have no rows are left out.
func cut(parts []store.Part, bytes []int64, n int64) [][]run {
	total := int64(0)
	for i := range bytes {
		bytes[i] = max(bytes[i], 1)
		total += bytes[i]
	}
	var out [][]run
	var current []run
	before := int64(0) // bytes of the parts before this one
	for i, part := range parts {
		rows := part.Batch.NumRows()
		for from := int64(0); from < rows; {
			// The stream after the rows so far ends where the next of n equal shares of bytes does.
			end := share(total, int64(len(out))+1, n)
			to := rows
			if before+bytes[i] > end {
				to = max(from, min(rows, int64(float64(end-before)/float64(bytes[i])*float64(rows))))
			}
			if to > from {
				current = append(current, run{first: part.First + from, batch: part.Batch.NewSlice(from, to), rows: to - from})
			}
			if to < rows || before+bytes[i] == end {
				out = append(out, current)
				current = nil
			}
			from = to
		}
		before += bytes[i]
	}
	if current != nil {
		out = append(out, current)
	}
	return slices.DeleteFunc(out, func(runs []run) bool { return len(runs) == 0 })
}

func share(total, k, n int64) int64 {
	if k >= n {
		return total
	}
	return int64(float64(total) / float64(n) * float64(k))
}

// sample keeps parts of a snapshot with a probability in per cent, as BigQuery does with blocks.
func sample(parts []store.Part, percent float64, r *rand.Rand) []store.Part {
	var out []store.Part
	for _, p := range parts {
		if r.Float64()*100 < percent {
			out = append(out, p)
		}
	}
	return out
}

func streamName(session string) string { return fmt.Sprintf("%s/streams/%s", session, newID()) }
