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
	// PendingBytes is the bytes of the rows of PENDING streams that are not committed.
	PendingBytes Quota
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

// serviceQuotas are BigQuery's defaults (BigQuery documentation, "Quotas and limits", "Storage Write API requests").
func serviceQuotas() Quotas {
	const mega, tera = 1_000_000, 1_000_000_000_000
	return Quotas{
		AppendCalls:      Quota{1_000, 10_000},
		AppendThroughput: Quota{300 * mega, 3_000 * mega},
		CreateStreams:    Quota{10_000, 10_000},
		PendingBytes:     Quota{tera, 10 * tera},
	}
}
