package profile

import "strings"

// Quotas are what a project may use in one location. The zero value has none: the limits of size hold all the same.
type Quotas struct {
	// AppendCalls is how many AppendRows calls may be open at once.
	AppendCalls Quota
	// AppendThroughput is the bytes of AppendRows requests in a second.
	AppendThroughput Quota
	// CreateStreams is the calls of CreateWriteStream in an hour.
	CreateStreams Quota
	// CreateStreamRate is the calls of CreateWriteStream in a second that are answered at once: later ones wait their turn.
	CreateStreamRate Quota
	// PendingBytes is the bytes of the rows of PENDING streams that are not committed.
	PendingBytes Quota

	// What follows is the same everywhere. 0 is none.

	// MetadataBurst is how often a table may be created, patched, updated or altered in 10 s.
	MetadataBurst int64
	// TableModifications is how many load and copy jobs, and query jobs with a destination, may write a table in a day; LoadJobs
	// and CopyJobs how many of them a project may run. Jobs that fail count. What has been used comes back throughout the day.
	TableModifications, LoadJobs, CopyJobs int64
	// QueuedQueries is how many interactive queries of a project may wait to run, PendingJobs how many jobs of any kind.
	QueuedQueries, PendingJobs int64
}

// Quota is a figure for regions and one for multi-regions, US and EU. 0 is none.
type Quota struct{ Region, MultiRegion int64 }

// In is the figure for a location; 0 is none.
func (q Quota) In(location string) int64 {
	if strings.EqualFold(location, "US") || strings.EqualFold(location, "EU") {
		return q.MultiRegion
	}
	return q.Region
}

// serviceQuotas are BigQuery's defaults (BigQuery documentation, "Quotas and limits"). Another client has seen 7 or 8 quick
// patches of a table before one was refused, where 5 are documented.
func serviceQuotas() Quotas {
	const mega, tera = 1_000_000, 1_000_000_000_000
	return Quotas{
		AppendCalls:      Quota{1_000, 10_000},
		AppendThroughput: Quota{300 * mega, 3_000 * mega},
		CreateStreams:    Quota{10_000, 10_000},
		CreateStreamRate: Quota{40, 40},
		PendingBytes:     Quota{tera, 10 * tera},

		MetadataBurst: 5, TableModifications: 1_500, LoadJobs: 100_000, CopyJobs: 100_000, QueuedQueries: 1_000, PendingJobs: 50_000,
	}
}
