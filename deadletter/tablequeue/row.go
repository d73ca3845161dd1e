package tablequeue

import (
	"strings"
	"time"

	"github.com/millrace-dev/millrace/deadletter"
)

// letterRow is a letter as a row.
type letterRow struct {
	Time        time.Time `bigquery:"time"`
	Job         string    `bigquery:"job"`
	Lane        int64     `bigquery:"lane"`
	Connector   string    `bigquery:"connector"`
	Destination string    `bigquery:"destination"`
	File        string    `bigquery:"file"`
	Line        int64     `bigquery:"line"`
	Position    int64     `bigquery:"position"`
	Split       string    `bigquery:"split"`
	Reason      string    `bigquery:"reason"`
	Replays     int64     `bigquery:"replays"`
	Payload     string    `bigquery:"payload"`
	Data        []byte    `bigquery:"data,nullable"`
	Context     string    `bigquery:"context"`
}

// cut is the payload of the beginning of a record.
const cut = "cut"

func rowOf(l *deadletter.Letter) letterRow {
	kind, data := l.Payload()
	r := letterRow{
		Time: l.Time, Job: text(l.Job), Lane: int64(l.Lane), Connector: text(l.Connector), Destination: text(l.Destination),
		File: text(l.File), Line: l.Line, Position: l.Position, Split: text(l.Split), Reason: text(l.Reason), Replays: int64(l.Replays),
		Payload: string(kind), Data: data, Context: text(l.Context),
	}
	if l.Cut {
		r.Payload = cut
	}
	return r
}

func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func (r *letterRow) letter() deadletter.Letter {
	l := deadletter.Letter{
		Time: r.Time, Job: r.Job, Lane: int(r.Lane), Connector: r.Connector, Destination: r.Destination,
		File: r.File, Line: r.Line, Position: r.Position, Split: r.Split, Reason: r.Reason, Replays: int(r.Replays),
		Context: r.Context, Cut: r.Payload == cut,
	}
	switch deadletter.Kind(r.Payload) {
	case deadletter.Record, cut:
		l.SetRecord(r.Data)
	case deadletter.Row:
		l.RowBytes = r.Data
	}
	return l
}

// size is about what the row takes when it is encoded.
func (r *letterRow) size() int {
	return len(r.Job) + len(r.Connector) + len(r.Destination) + len(r.File) + len(r.Split) + len(r.Reason) + len(r.Payload) + len(r.Data) + len(r.Context) + 200
}
