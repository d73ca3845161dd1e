// Package profile holds the figures of a local BigQuery that a test may set one by one: limits, and the windows within
// which a change has not reached every server yet.
package profile

import (
	"math/rand/v2"
	"time"
)

// Profile is all of them. The zero value keeps every limit at its default and has no quotas and no windows.
type Profile struct {
	Limits  Limits
	Quotas  Quotas
	Windows Windows
	// CommittedChanges takes change data capture on streams of type COMMITTED too, and the change type INSERT, which is UPSERT by
	// another name. BigQuery documents neither; a suite of an official client does both (cloud-bigquery, managedwriter).
	CommittedChanges bool
}

// Limits are sizes and counts. Zero means the default.
type Limits struct {
	// AppendBytes is the serialized size of one AppendRows request in bytes; 0 is 10 MiB. BigQuery documents 20 MB now and
	// documented 10 MB before.
	AppendBytes int64
	// AppendTooLargeInBand answers a larger request in a response and keeps the call, instead of ending the call.
	AppendTooLargeInBand bool
	// RowErrors is how many bad rows an answer lists; 0 is 100.
	RowErrors int
	// AppendIdle is how long an AppendRows call may be silent before the service ends it; 0 is 600 s.
	AppendIdle time.Duration
	// TombstoneRetention is how long change data capture remembers that a key was deleted; 0 is 2 days, a figure of
	// BigQuery's documentation that nobody has measured.
	TombstoneRetention time.Duration
	// ReadSplitBytes is the size of the selected columns up to which a read session has one stream; a larger one has a
	// stream for each 66/240 of it. 0 is 240 MiB.
	ReadSplitBytes int64
	// ReadBlockBytes and ReadBlockRows bound one response of ReadRows, which holds at least one row; 0 is 4 MiB and 16,384
	// rows.
	ReadBlockBytes, ReadBlockRows int64
}

// Windows are how long a change takes to arrive. Each is drawn anew for each table or change, from the seeded generator.
type Windows struct {
	// CreateDefaultAppend: appends to the default stream of a fresh table are denied.
	CreateDefaultAppend Window
	// CreateOpenStream: the first calls of CreateWriteStream on a fresh table are denied; CreateFlush: so are those of FlushRows.
	CreateOpenStream, CreateFlush Denials
	// ReconnectOffset: a connection that is opened to a COMMITTED stream with rows holds a stale count of them, and refuses an
	// append at the end.
	ReconnectOffset Window
	// AddNewConnection and AddOpenConnection: a new column is unknown to connections opened after the change, and to those
	// that were open already.
	AddNewConnection, AddOpenConnection Window
	// RelaxNewConnection and RelaxOpenConnection: the same for a column that became NULLABLE.
	RelaxNewConnection, RelaxOpenConnection Window
	// SchemaDrop: values for a column that has been dropped are taken and lost; later the column is one too many.
	SchemaDrop Window
	// RecreateGhost: connections that were open when a table was deleted and made again have their appends acknowledged, and the
	// rows lost; later ones hang for 120 s, and the call ends with DEADLINE_EXCEEDED. Default streams only.
	RecreateGhost Window
	// ReadSelectedFields: a new column is unknown to the selected fields of read sessions.
	ReadSelectedFields Window
	// NumRows: a table's figures in REST answers trail its default stream.
	NumRows Window
	// CopyBuffer: rows are not seen by copy and extract jobs, as rows in the streaming buffer are not at times. Rows that jobs
	// wrote are hidden, too.
	CopyBuffer Window
	// JobPending and JobRunning: a job stays in that state before it goes on.
	JobPending, JobRunning Window
}

// Denials are how often calls on a table are denied while it is fresh: with a chance, 1 to Max calls in a row, as long as the
// table is not older than Within. The zero value is never.
type Denials struct {
	Chance float64
	Max    int
	Within time.Duration
}

// Draw picks a number of denials.
func (d Denials) Draw(r *rand.Rand) int {
	if d.Chance <= 0 || d.Max <= 0 || r.Float64() >= d.Chance {
		return 0
	}
	return 1 + r.IntN(d.Max)
}

// Window is a length of time between Min and Max, both included; the zero value is none. With a chance it is Tail instead.
type Window struct {
	Min, Max, Tail time.Duration
	TailChance     float64
}

// Draw picks a length.
func (w Window) Draw(r *rand.Rand) time.Duration {
	if w.TailChance > 0 && r.Float64() < w.TailChance {
		return w.Tail
	}
	if w.Max <= w.Min {
		return w.Min
	}
	return w.Min + time.Duration(r.Int64N(int64(w.Max-w.Min)+1))
}

// Friendly is the profile of newcomers: the zero value.
func Friendly() Profile { return Profile{} }

// Service has the windows that others observed at BigQuery: a fresh table denies its first appends for 1 to 10 s
// (observed, length inferred), 23 % of fresh tables deny CreateWriteStream once or twice, and 8 % the first FlushRows (observed
// in 140 trials; that it ends after 10 s is inferred); a new column reaches new connections after 1 s and open ones after
// 7 s, a relaxed one after 0.4 s and 2 s, with tails of 11.5 s and 5 minutes whose chance of 1 % is inferred, values for a dropped one are lost for 9 s, and read sessions know a new column after
// 30 s; numRows trails the default stream by 5 minutes (figures
// published by another client).
func Service() Profile {
	exactly := func(d time.Duration) Window { return Window{Min: d, Max: d} }
	tailed := func(d, tail time.Duration) Window { return Window{Min: d, Max: d, Tail: tail, TailChance: 0.01} }
	return Profile{Quotas: serviceQuotas(), Windows: Windows{
		CreateDefaultAppend: Window{Min: time.Second, Max: 10 * time.Second},
		CreateOpenStream:    Denials{Chance: 0.23, Max: 2, Within: 10 * time.Second},
		CreateFlush:         Denials{Chance: 0.08, Max: 1, Within: 10 * time.Second},
		AddNewConnection:    exactly(time.Second),
		AddOpenConnection:   exactly(7 * time.Second),
		RelaxNewConnection:  tailed(400*time.Millisecond, 11500*time.Millisecond),
		RelaxOpenConnection: tailed(2*time.Second, 5*time.Minute),
		RecreateGhost:       Window{Min: 4 * time.Second, Max: 7 * time.Second},
		SchemaDrop:          exactly(9 * time.Second),
		ReadSelectedFields:  exactly(30 * time.Second),
		NumRows:             exactly(5 * time.Minute),
	}}
}

// Resolve gives every limit that is zero its default.
func (p Profile) Resolve() Profile {
	if p.Limits.AppendBytes == 0 {
		p.Limits.AppendBytes = 10 << 20
	}
	if p.Limits.RowErrors == 0 {
		p.Limits.RowErrors = 100
	}
	if p.Limits.AppendIdle == 0 {
		p.Limits.AppendIdle = 600 * time.Second
	}
	return p
}
