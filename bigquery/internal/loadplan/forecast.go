package loadplan

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// What BigQuery lets jobs do in a day; jobs that fail count (BigQuery documentation, "Quotas and limits", load jobs, copy jobs and
// standard tables, as of 2026-11-30).
const (
	TableModificationsPerDay = 1_500 // load, copy and query jobs into one table
	ProjectLoadsPerDay       = 100_000
	ProjectCopiesPerDay      = 100_000
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

// Files is how writers stage.
type Files struct {
	Bytes   int64 // from which size on a file is finished
	Open    int   // files that a writer holds open
	Pending int   // files of a writer that may wait for the next commit
}

// Forecast is what a flow comes to: rows spread evenly over time, destinations and lanes, and nothing goes wrong.
type Forecast struct {
	CheckpointsPerDay   int64
	BytesPerCheckpoint  int64 // staged, of all destinations
	BytesPerLane        int64 // of that, what one lane stages
	FilesPerLane        int64 // of one checkpoint, of all destinations
	MaxFilesPerLane     int64 // with more the job ends
	FilesPerDestination int64 // of one checkpoint, of all lanes
	// MoreFiles says that there are more destinations than files that a lane holds open: rows in no order have files finished before
	// they are full, so that there will be more of them than these.
	MoreFiles bool
	// PerDestination are the jobs that load one destination's files of one checkpoint.
	PerDestination Jobs
	LoadsPerDay    int64 // of all destinations
	CopiesPerDay   int64
	// ModificationsPerDay is how often jobs change one destination.
	ModificationsPerDay int64
	// ShortestEvery is the shortest interval, in whole seconds, with which files and jobs stay within all limits, those of a day too. 0: there is none.
	ShortestEvery time.Duration
}

// Jobs counts jobs.
type Jobs struct {
	Loads, Copies, Queries int64
}

// Forecast is what f comes to.
func (f Flow) Forecast(d Disposition, files Files, lim Limits) (Forecast, error) {
	if err := f.check(); err != nil {
		return Forecast{}, err
	}
	out := f.at(f.Every, d, files, lim)
	for every := time.Second; every <= day; every += time.Second {
		if f.at(every, d, files, lim).fits(int64(f.Destinations), lim) {
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
func (f Flow) at(every time.Duration, d Disposition, files Files, lim Limits) Forecast {
	rows := f.RowsPerSecond * every.Seconds()
	bytes := rows * f.RowBytes
	destinations, lanes := float64(f.Destinations), float64(f.Lanes)
	each := math.Max(1, math.Ceil(bytes/(destinations*lanes)/float64(files.Bytes))) // files of a lane and a destination
	all := math.Max(1, math.Min(each*lanes, math.Ceil(rows/destinations)))          // no file without a row
	out := Forecast{
		CheckpointsPerDay: max(1, int64(day/every)), BytesPerCheckpoint: int64(math.Round(bytes)), BytesPerLane: int64(math.Round(bytes / lanes)),
		FilesPerLane: int64(math.Ceil(all * destinations / lanes)), MaxFilesPerLane: int64(files.Pending), FilesPerDestination: int64(all), MoreFiles: f.Destinations > files.Open,
		PerDestination: JobsFor(d, lim, int64(all), int64(math.Ceil(bytes/destinations))),
	}
	out.LoadsPerDay = out.CheckpointsPerDay * int64(f.Destinations) * out.PerDestination.Loads
	out.CopiesPerDay = out.CheckpointsPerDay * int64(f.Destinations) * out.PerDestination.Copies
	out.ModificationsPerDay = out.CheckpointsPerDay
	return out
}

// fits says whether a forecast stays within all limits.
func (f Forecast) fits(destinations int64, lim Limits) bool {
	return f.FilesPerLane <= f.MaxFilesPerLane && f.ModificationsPerDay <= TableModificationsPerDay && f.LoadsPerDay <= ProjectLoadsPerDay && f.CopiesPerDay <= ProjectCopiesPerDay &&
		f.PerDestination.Loads*destinations <= int64(lim.Loads) && f.PerDestination.Copies*destinations <= int64(lim.Copies)
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
