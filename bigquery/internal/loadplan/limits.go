package loadplan

import "fmt"

// Limits bound the jobs of one commit.
type Limits struct {
	FilesPerLoad   int   // URIs of one load job
	BytesPerLoad   int64 // and their bytes together; a file that is larger by itself is loaded alone
	SourcesPerCopy int   // tables that one copy job reads, at least 2
	Loads          int   // load jobs of one commit
	Copies         int   // copy jobs of one commit
	LoadWave       int   // load jobs, or copy jobs, that are submitted before any is awaited
	QueryWave      int   // the same for queries
}

// ServiceLimits are those of BigQuery (BigQuery documentation, "Quotas and limits", as of 2026-11-30: 10,000 URIs and 15 TB a load
// job, 1,200 source tables a copy job, 100,000 load and as many copy jobs a day and project). Bytes stay below by a quarter, since
// the service counts what it unpacks: 11 TiB are 12,094,627,905,536.
func ServiceLimits() Limits {
	return Limits{
		FilesPerLoad: 10_000, BytesPerLoad: 11 << 40, SourcesPerCopy: 1_200,
		Loads: 100_000, Copies: 100_000, LoadWave: 50_000, QueryWave: 1_000,
	}
}

func (l Limits) check() error {
	if l.FilesPerLoad < 1 || l.BytesPerLoad < 1 || l.SourcesPerCopy < 2 || l.Loads < 1 || l.Copies < 1 || l.LoadWave < 1 || l.QueryWave < 1 {
		return fmt.Errorf("limits of a load plan are %+v: expected 1 or more of each, and 2 sources of a copy", l)
	}
	return nil
}
