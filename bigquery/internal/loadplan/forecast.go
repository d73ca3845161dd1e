package loadplan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// What BigQuery lets jobs do in a day; jobs that fail count.
const (
	tableLoadsPerDay         = 1_500
	tableModificationsPerDay = 1_500 // load, copy and query jobs into one table
	projectLoadsPerDay       = 100_000
	projectCopiesPerDay      = 100_000
)

// The pages that say so (BigQuery documentation, as of 2026-11-30).
const (
	loadQuotas  = "https://cloud.google.com/bigquery/quotas#load_jobs"
	copyQuotas  = "https://cloud.google.com/bigquery/quotas#copy_jobs"
	tableQuotas = "https://cloud.google.com/bigquery/quotas#standard_tables"
)

const day = 24 * time.Hour

// Flow is what is expected of a job that goes on and on.
type Flow struct {
	RowsPerSecond float64       // of all destinations together
	RowBytes      float64       // what a row takes in a staged file, on the average
	Every         time.Duration // between two checkpoints
	Destinations  int           // tables that get rows
	Lanes         int           // writers, each of which gets rows of every destination
}

// Staging is what of a sink's options a forecast depends on, resolved.
type Staging struct {
	Disposition  Disposition
	FileBytes    int64         // from which size on a file is finished
	OpenFiles    int           // that a writer holds open
	PendingFiles int           // of a writer that may wait for the next commit
	MinEvery     time.Duration // the shortest interval that is not refused
	Limits       Limits
}

// Forecast is what a flow comes to: rows spread evenly over time, destinations and lanes, and nothing goes wrong.
type Forecast struct {
	CheckpointsPerDay   int64
	BytesPerCheckpoint  int64 // staged, of all destinations
	BytesPerLane        int64 // of that, what one lane stages
	FilesPerLane        int64 // of one checkpoint, of all destinations
	FilesPerDestination int64 // of one checkpoint, of all lanes
	// MoreFiles says that there are more destinations than files that a lane holds open: rows in no order have files finished before
	// they are full, so that there will be more of them than these.
	MoreFiles bool
	// PerDestination are the jobs that load one destination's files of one checkpoint.
	PerDestination Jobs
	Quotas         []Quota
	// Refused says that the interval is shorter than the options allow.
	Refused bool
	// ShortestEvery is the shortest interval that is not, in whole seconds, and with which everything stays within the quotas. 0:
	// there is none.
	ShortestEvery time.Duration
}

// Quota is a limit that a flow is held to.
type Quota struct {
	Name   string
	Takes  int64
	Limit  int64
	Source string // where the limit is from: a page, or an option
}

// Jobs counts jobs.
type Jobs struct {
	Loads, Copies, Queries int64
}

// Forecast is what f comes to.
func (f Flow) Forecast(s Staging) (Forecast, error) {
	if err := f.check(); err != nil {
		return Forecast{}, err
	}
	out := f.at(f.Every, s)
	for every := max(s.MinEvery.Round(time.Second), time.Second); every <= day; every += time.Second {
		if f.at(every, s).fits() {
			out.ShortestEvery = every
			break
		}
	}
	return out, nil
}

// mostBytes is more than anyone stages between two checkpoints, and little enough to count with.
const mostBytes = 1e18

func (f Flow) check() error {
	var faults []error
	positive := func(what string, ok bool, got any) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s must be positive: %v", what, got))
		}
	}
	positive("rows a second", f.RowsPerSecond > 0 && !math.IsInf(f.RowsPerSecond, 0), f.RowsPerSecond)
	positive("bytes of a row", f.RowBytes > 0 && !math.IsInf(f.RowBytes, 0), f.RowBytes)
	positive("the interval of checkpoints", f.Every > 0, f.Every)
	positive("the number of destinations", f.Destinations > 0, f.Destinations)
	positive("the number of lanes", f.Lanes > 0, f.Lanes)
	if faults == nil {
		if most := f.RowsPerSecond * max(f.RowBytes, 1) * max(day, f.Every).Seconds(); most > mostBytes {
			faults = append(faults, fmt.Errorf("%.3g bytes between two checkpoints are more than can be counted with: expected less than %.0g", most, mostBytes))
		}
		if f.Destinations > math.MaxInt32 || f.Lanes > math.MaxInt32/f.Destinations {
			faults = append(faults, fmt.Errorf("%d destinations on %d lanes are more than can be counted with", f.Destinations, f.Lanes))
		}
	}
	return errors.Join(faults...)
}

// at is the forecast for another interval.
func (f Flow) at(every time.Duration, s Staging) Forecast {
	rows := f.RowsPerSecond * every.Seconds()
	bytes := rows * f.RowBytes
	destinations, lanes := float64(f.Destinations), float64(f.Lanes)
	each := math.Max(1, math.Ceil(bytes/(destinations*lanes)/float64(s.FileBytes))) // files of a lane and a destination
	all := math.Max(1, math.Min(each*lanes, math.Ceil(rows/destinations)))          // no file without a row
	jobs := JobsFor(s.Disposition, s.Limits, int64(all), int64(math.Ceil(bytes/destinations)))
	commits, perLane := max(1, int64(day/every)), int64(math.Ceil(all*destinations/lanes))
	return Forecast{
		CheckpointsPerDay: commits, BytesPerCheckpoint: int64(math.Round(bytes)), BytesPerLane: int64(math.Round(bytes / lanes)),
		FilesPerLane: perLane, FilesPerDestination: int64(all), MoreFiles: f.Destinations > s.OpenFiles, PerDestination: jobs,
		Quotas: append(f.quotas(commits, jobs, s.Limits),
			Quota{"files of a lane that wait for a checkpoint", perLane, int64(s.PendingFiles), "MaxPendingFiles"}),
		Refused: every < s.MinEvery,
	}
}

// quotas are those of so many commits a day.
func (f Flow) quotas(commits int64, jobs Jobs, lim Limits) []Quota {
	loads, copies, direct := jobs.Loads*int64(f.Destinations), jobs.Copies*int64(f.Destinations), commits
	if jobs.Copies > 0 {
		direct = 0 // they go into temporary tables, which are new each time
	}
	return []Quota{
		{"load jobs of a table in a day", direct, tableLoadsPerDay, loadQuotas},
		{"modifications of a table in a day, by jobs", commits, tableModificationsPerDay, tableQuotas},
		{"load jobs of a project in a day", loads * commits, projectLoadsPerDay, loadQuotas},
		{"copy jobs of a project in a day", copies * commits, projectCopiesPerDay, copyQuotas},
		{"load jobs of one checkpoint", loads, int64(lim.Loads), loadQuotas},
	}
}

// fits says whether a forecast stays within the quotas.
func (f Forecast) fits() bool {
	return !slices.ContainsFunc(f.Quotas, func(q Quota) bool { return q.Takes > q.Limit })
}

// JobsFor counts the jobs of a part whose files are of one format and of one size.
func JobsFor(d Disposition, lim Limits, files, bytes int64) Jobs {
	if files < 1 {
		return Jobs{}
	}
	size := (bytes + files - 1) / files
	room := int64(lim.FilesPerLoad)
	if size > 0 {
		room = min(room, max(1, lim.BytesPerLoad/size))
	}
	jobs := Jobs{Loads: (files + room - 1) / room}
	if jobs.Loads == 1 {
		return jobs
	}
	jobs.Copies = int64(Copies(int(jobs.Loads), lim.SourcesPerCopy))
	if d == TruncateData {
		jobs.Queries = 1
	}
	return jobs
}
