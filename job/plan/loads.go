package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/job"
)

// Sizing is what file loads of a flow of rows come to: rows spread evenly over time, tables and lanes, and nothing goes wrong.
type Sizing struct {
	RowsPerSecond float64 `json:"rowsPerSecond"`
	RowBytes      float64 `json:"rowBytes"` // as staged
	Every         string  `json:"every"`
	Tables        int     `json:"tables"`
	Lanes         int     `json:"lanes"`

	CheckpointsPerDay int64 `json:"checkpointsPerDay"`
	Bytes             int64 `json:"bytes"` // of one checkpoint
	BytesPerLane      int64 `json:"bytesPerLane"`
	FilesPerLane      int64 `json:"filesPerLane"`
	FilesPerTable     int64 `json:"filesPerTable"`
	// MoreFiles says that there are more tables than files that a lane holds open, so that files are finished before they are full.
	MoreFiles bool `json:"moreFiles"`
	// LoadJobs, CopyJobs and QueryJobs are those of one table at one checkpoint.
	LoadJobs  int64 `json:"loadJobs"`
	CopyJobs  int64 `json:"copyJobs"`
	QueryJobs int64 `json:"queryJobs"`

	Quotas []Quota `json:"quotas"`
	// Refused says that the interval is shorter than minCheckpointInterval.
	Refused bool `json:"refused"`
	// ShortestEvery is the shortest interval that is not refused and stays within the quotas, "" when there is none.
	ShortestEvery string `json:"shortestEvery,omitempty"`
}

// Size sizes a flow of rows for file loads with the options of a job file, or of none.
func Size(flow bigquery.FileLoadFlow, o job.FileLoads) (*Sizing, error) {
	f, err := o.Forecast(flow)
	if err != nil {
		return nil, err
	}
	out := &Sizing{
		RowsPerSecond: flow.RowsPerSecond, RowBytes: flow.RowBytes, Every: flow.Every.String(), Tables: flow.Destinations, Lanes: flow.Lanes,
		CheckpointsPerDay: f.CheckpointsPerDay, Bytes: f.BytesPerCheckpoint, BytesPerLane: f.BytesPerLane,
		FilesPerLane: f.FilesPerLane, FilesPerTable: f.FilesPerDestination, MoreFiles: f.MoreFiles,
		LoadJobs: f.PerDestination.Loads, CopyJobs: f.PerDestination.Copies, QueryJobs: f.PerDestination.Queries,
		Quotas: countedQuotas(f, ""), Refused: f.Refused,
	}
	if f.ShortestEvery > 0 {
		out.ShortestEvery = f.ShortestEvery.String()
	}
	return out, nil
}

func countedQuotas(f bigquery.FileLoadForecast, when string) []Quota {
	out := make([]Quota, len(f.Quotas))
	for i, q := range f.Quotas {
		out[i] = Quota{Name: q.Name, Uses: number(int(q.Takes)) + when, Limit: number(int(q.Limit)), Over: q.Takes > q.Limit, Source: q.Source}
		if q.Source == "MaxPendingFiles" {
			out[i].Source = "fileLoads.maxPendingFiles"
		}
		if left := q.Limit - q.Takes; left >= 0 {
			out[i].Left = number(int(left))
		} else {
			out[i].Left = "none: " + number(int(-left)) + " too many"
		}
	}
	return out
}

// loadQuotas are what a job takes of the quotas of jobs, as far as the job file and the size of the input tell. With an interval it is
// one load job for each table and checkpoint, as long as one is large enough; otherwise one commit takes all of the input.
func loadQuotas(plan *Plan, p *job.Parsed) ([]Quota, error) {
	const day = 24 * time.Hour
	flow := bigquery.FileLoadFlow{
		RowsPerSecond: 1, RowBytes: 1, Every: cmp.Or(p.Checkpoint.Every, day), Destinations: max(1, len(plan.Tables)), Lanes: max(1, plan.Lanes),
	}
	when := ", where each checkpoint has rows of each table"
	if p.Checkpoint.Every == 0 {
		flow.RowBytes, when = float64(max(1, plan.Source.Bytes))/day.Seconds(), " each time the job is run"
	}
	f, err := p.Sink.BigQuery.FileLoads.Forecast(flow)
	if err != nil {
		return nil, fmt.Errorf("quotas of file loads: %w", err)
	}
	f.Quotas = f.Quotas[:len(f.Quotas)-1] // how many files there are is not known
	all := countedQuotas(f, when)
	if part := p.Sink.BigQuery.Create.Partition; part != nil {
		all = append(all, partitionQuotas(part, f.CheckpointsPerDay, p.Checkpoint.Every > 0)...)
	}
	return all, nil
}

const (
	partitionsOfAJob      = 4_000
	ingestionPartitionMod = 11_000 // a day, of a table that is partitioned by ingestion
	columnPartitionMod    = 30_000
)

// partitionQuotas count partitions: a job takes as many of them as it has rows of.
func partitionQuotas(part *job.Partition, commits int64, streaming bool) []Quota {
	most := columnPartitionMod
	if part.Field == "" {
		most = ingestionPartitionMod
	}
	rows, day := "the input has rows of", "as many, each time the job is run"
	if streaming {
		rows, day = "a checkpoint has rows of", fmt.Sprintf("%s times as many: room for %s at each checkpoint", number(int(commits)), plural(most/int(commits), "partition"))
	}
	return []Quota{
		{Name: "partitions that one job changes", Uses: "as many as " + rows, Limit: number(partitionsOfAJob), Source: partitionLimits},
		{Name: "modifications of a table's partitions in a day, by jobs", Uses: day, Limit: number(most), Source: partitionLimits},
	}
}
