//go:build unix

package staging_test

import (
	"bytes"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
)

// processor is the processor time that the process has taken.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// turns is how long the same work took each time.
type turns []time.Duration

func (t turns) median() time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[len(s)/2]
}

// of is what part of what others took in the same turn this took, in the middle one of all turns.
func (t turns) of(others turns) float64 {
	parts := make([]float64, len(t))
	for i := range t {
		parts[i] = float64(t[i]) / float64(others[i])
	}
	slices.Sort(parts)
	return parts[len(parts)/2]
}

// BenchmarkOfCompressor holds files to their compressor alone by processor time, in turns: other programs on the machine slow both. The
// metric is the file's speed as a part of the compressor's, which has the blocks of the file ready made, or the bytes of the rows.
func BenchmarkOfCompressor(b *testing.B) {
	for name, words := range map[string]int{"small rows": 0, "rows of 1 kB": 140} {
		b.Run(name, func(b *testing.B) {
			plan, rows := benchRows(b, words)
			e := staging.NewAvroEncoder(plan)
			var datums []byte
			for _, r := range rows {
				var err error
				if datums, err = e.Append(datums, r); err != nil {
					b.Fatal(err)
				}
			}
			datums = bytes.Repeat(datums, 20)
			raw := bytes.Repeat(bytes.Join(rows, nil), 20)
			z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
			if err != nil {
				b.Fatal(err)
			}
			f, err := staging.NewAvroFile(io.Discard, plan)
			if err != nil {
				b.Fatal(err)
			}
			var alone, same, file turns
			var out []byte
			compress := func(data []byte) {
				for rest := data; len(rest) > 0; {
					n := min(64_000, len(rest))
					out = z.EncodeAll(rest[:n], out[:0])
					rest = rest[n:]
				}
			}
			for b.Loop() {
				begun := processor(b)
				compress(datums)
				first := processor(b)
				compress(raw)
				half := processor(b)
				for range 20 {
					for _, r := range rows {
						if err := f.Write(r); err != nil {
							b.Fatal(err)
						}
					}
				}
				file = append(file, processor(b)-half)
				alone = append(alone, first-begun)
				same = append(same, half-first)
			}
			b.ReportMetric(alone.of(file), "of-compressor")
			b.ReportMetric(same.of(file), "of-compressor-of-rows")
			b.ReportMetric(float64(20*len(rows))/file.median().Seconds(), "rows/cpu-s")
			b.ReportMetric(float64(len(datums))/file.median().Seconds()/1e6, "MB/cpu-s")
		})
	}
}
