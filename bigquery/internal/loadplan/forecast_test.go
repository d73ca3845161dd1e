package loadplan_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
)

var defaults = loadplan.Staging{FileBytes: 16 << 20, OpenFiles: 16, PendingFiles: 10_000, Limits: service}

func forecast(t testing.TB, f loadplan.Flow) loadplan.Forecast {
	t.Helper()
	out, err := f.Forecast(defaults)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// takes is what a forecast takes of a quota.
func takes(f loadplan.Forecast, name string) int64 {
	i := slices.IndexFunc(f.Quotas, func(q loadplan.Quota) bool { return strings.HasPrefix(q.Name, name) })
	return f.Quotas[i].Takes
}

func TestForecast(t *testing.T) {
	flow := func(every time.Duration, destinations, lanes int) loadplan.Flow {
		return loadplan.Flow{RowsPerSecond: 100_000, RowBytes: 150, Every: every, Destinations: destinations, Lanes: lanes}
	}
	t.Run("a table of 100,000 rows a second", func(t *testing.T) {
		f := forecast(t, flow(3*time.Minute, 1, 256))
		equal(t, "bytes of a checkpoint", f.BytesPerCheckpoint, 2_700_000_000)
		equal(t, "bytes of a lane", f.BytesPerLane, 10_546_875)
		equal(t, "files of a lane", f.FilesPerLane, 1)
		equal(t, "files of the table", f.FilesPerDestination, 256)
		equal(t, "modifications a day", takes(f, "modifications of a table"), 480)
		equal(t, "loads a day", takes(f, "load jobs of a project"), 480)
		equal(t, "jobs of a checkpoint", f.PerDestination, loadplan.Jobs{Loads: 1})

		f = forecast(t, flow(5*time.Minute, 1, 256))
		equal(t, "bytes of a checkpoint", f.BytesPerCheckpoint, 4_500_000_000)
		equal(t, "bytes of a lane", f.BytesPerLane, 17_578_125)
		equal(t, "files of a lane", f.FilesPerLane, 2)
		equal(t, "loads a day", takes(f, "load jobs of a project"), 288)
	})
	t.Run("many tables share the quota of a project", func(t *testing.T) {
		f := forecast(t, flow(3*time.Minute, 200, 8))
		equal(t, "loads a day", takes(f, "load jobs of a project"), 96_000)
		equal(t, "more files", f.MoreFiles, true)
		equal(t, "the shortest interval", f.ShortestEvery, 173*time.Second) // 200 loads of 100,000 in a day: 172.8 s
		equal(t, "the shortest interval of one table", forecast(t, flow(3*time.Minute, 1, 8)).ShortestEvery, 58*time.Second)
	})
	t.Run("intervals and what a table bears", func(t *testing.T) {
		for every, want := range map[time.Duration]int64{time.Minute: 1440, 2 * time.Minute: 720, 5 * time.Minute: 288, 48 * time.Hour: 1} {
			equal(t, every.String(), takes(forecast(t, flow(every, 1, 1)), "modifications of a table"), want)
		}
	})
	t.Run("the shortest interval is one that the options allow", func(t *testing.T) {
		staging := defaults
		staging.MinEvery = 2 * time.Minute
		f, err := flow(time.Minute, 1, 8).Forecast(staging)
		if err != nil || !f.Refused || f.ShortestEvery != 2*time.Minute {
			t.Errorf("refused: %t, the shortest interval is %v, error %v", f.Refused, f.ShortestEvery, err)
		}
		if f, err = flow(2*time.Minute, 1, 8).Forecast(staging); err != nil || f.Refused {
			t.Errorf("refused: %t, error %v", f.Refused, err)
		}
	})
	t.Run("more files than one load takes", func(t *testing.T) {
		f := forecast(t, loadplan.Flow{RowsPerSecond: 1e7, RowBytes: 1000, Every: time.Minute, Destinations: 1, Lanes: 256})
		// 600 GB: 140 files of each lane.
		equal(t, "files", f.FilesPerDestination, 35_840)
		equal(t, "jobs", f.PerDestination, loadplan.Jobs{Loads: 4, Copies: 1})
		equal(t, "loads a day", takes(f, "load jobs of a project"), 4*1440)
		equal(t, "modifications a day", takes(f, "modifications of a table"), 1440)
		equal(t, "loads of the table a day", takes(f, "load jobs of a table"), 0)
		equal(t, "copies a day", takes(f, "copy jobs"), 1440)
	})
	t.Run("no file without a row", func(t *testing.T) {
		f := forecast(t, loadplan.Flow{RowsPerSecond: 0.01, RowBytes: 100, Every: 5 * time.Minute, Destinations: 1, Lanes: 256})
		equal(t, "files", f.FilesPerDestination, 3)
	})
	t.Run("more tables than a project can load", func(t *testing.T) {
		f := forecast(t, flow(5*time.Minute, 200_000, 8))
		equal(t, "the shortest interval", f.ShortestEvery, 0)
	})
	t.Run("flows that are none", func(t *testing.T) {
		good := flow(time.Minute, 1, 1)
		for want, change := range map[string]func(*loadplan.Flow){
			"rows a second":           func(f *loadplan.Flow) { f.RowsPerSecond = 0 },
			"rows a second must":      func(f *loadplan.Flow) { f.RowsPerSecond = math.NaN() },
			"bytes of a row":          func(f *loadplan.Flow) { f.RowBytes = -1 },
			"bytes of a row must":     func(f *loadplan.Flow) { f.RowBytes = math.Inf(1) },
			"interval":                func(f *loadplan.Flow) { f.Every = 0 },
			"number of destinations":  func(f *loadplan.Flow) { f.Destinations = 0 },
			"number of lanes":         func(f *loadplan.Flow) { f.Lanes = -1 },
			"can be counted":          func(f *loadplan.Flow) { f.RowsPerSecond, f.RowBytes = 1e12, 1e9 },
			"destinations on 2 lanes": func(f *loadplan.Flow) { f.Destinations, f.Lanes = math.MaxInt32, 2 },
		} {
			f := good
			change(&f)
			if _, err := f.Forecast(defaults); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error is %v, want one about %s", f, err, want)
			}
		}
	})
}

// TestForecastJobsArePlanned: the jobs that are foreseen are those of the plan.
func TestForecastJobsArePlanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 80).Draw(t, "files")
		size := rapid.Int64Range(0, 50).Draw(t, "size")
		lim := limits(rapid.IntRange(1, 9).Draw(t, "files per load"), rapid.IntRange(2, 4).Draw(t, "sources per copy"))
		lim.BytesPerLoad = rapid.Int64Range(1, 200).Draw(t, "bytes per load")
		cfg := loadplan.Config{Disposition: loadplan.Disposition(rapid.IntRange(0, 3).Draw(t, "disposition"))}
		var cs []loadplan.Committable
		for i := range n {
			c := staged(fmt.Sprint(i))
			c.Bytes = size
			cs = append(cs, c)
		}
		var want loadplan.Jobs
		p, err := loadplan.Build(cfg, lim, slices.Values(under(cfg, cs)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Parts {
			for _, j := range jobs(&p.Parts[i]) {
				switch j.Kind {
				case loadplan.LoadJob:
					want.Loads++
				case loadplan.CopyJob:
					want.Copies++
				case loadplan.QueryJob:
					want.Queries++
				}
			}
		}
		if got := loadplan.JobsFor(cfg.Disposition, lim, int64(n), int64(n)*size); got != want {
			t.Fatalf("%d files of %d bytes: foreseen are %+v, planned %+v", n, size, got, want)
		}
	})
}
