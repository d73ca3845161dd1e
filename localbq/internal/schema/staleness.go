package schema

import "time"

// Staleness is the table option max_staleness: how old the base of a table with changes may be when a query reads it. A nil
// one has never been set; one of nothing has been set and cleared, which BigQuery tells apart in INFORMATION_SCHEMA.
type Staleness struct {
	Months int32 `json:"months,omitempty"`
	Days   int32 `json:"days,omitempty"`
	Micros int64 `json:"micros,omitempty"`
}

// Duration is the staleness with days of 24 hours and months of 30 days; 0 for nil.
func (s *Staleness) Duration() time.Duration {
	if s == nil {
		return 0
	}
	const day = 24 * time.Hour
	return time.Duration(s.Months)*30*day + time.Duration(s.Days)*day + time.Duration(s.Micros)*time.Microsecond
}
