package main

import (
	"math"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/engine"
)

// jobStatusJSON is what /api/job answers. Fields are added, never changed; docs/reference/http.md lists them.
type jobStatusJSON struct {
	Job          string    `json:"job"`
	State        string    `json:"state"`
	Started      time.Time `json:"started"`
	Read         int64     `json:"read"`
	Written      int64     `json:"written"`
	DeadLettered int64     `json:"dead_lettered"`
	Skipped      int64     `json:"skipped"`
	Failed       int64     `json:"failed"`
	Buffered     int64     `json:"buffered"`
	Bytes        int64     `json:"bytes"`
	InputBytes   int64     `json:"input_bytes"`
	TotalBytes   int64     `json:"total_bytes,omitempty"`

	Lanes        []laneJSON        `json:"lanes"`
	Splits       splitsJSON        `json:"splits"`
	Reading      *readingJSON      `json:"reading,omitempty"`
	Destinations []destinationJSON `json:"destinations"`

	Checkpoint        int64            `json:"checkpoint"`
	Checkpoints       int              `json:"checkpoints"`
	FailedCheckpoints int              `json:"failed_checkpoints"`
	RecentCheckpoints []checkpointJSON `json:"recent_checkpoints"`
	ResumedFrom       int64            `json:"resumed_from,omitempty"`
	StartedAnew       bool             `json:"started_anew,omitempty"`

	Restarts      int        `json:"restarts"`
	LastFailure   string     `json:"last_failure,omitempty"`
	LastFailureAt *time.Time `json:"last_failure_at,omitempty"`
}

type laneJSON struct {
	Lane         int    `json:"lane"`
	Doing        string `json:"doing"`
	Split        string `json:"split,omitempty"`
	Position     int64  `json:"position"`
	Read         int64  `json:"read"`
	Written      int64  `json:"written"`
	DeadLettered int64  `json:"dead_lettered"`
	Skipped      int64  `json:"skipped"`
	Buffered     int64  `json:"buffered"`
	Bytes        int64  `json:"bytes"`
}

type splitsJSON struct {
	Assigned int64 `json:"assigned"`
	Finished int64 `json:"finished"`
}

type readingJSON struct {
	Session string       `json:"session,omitempty"`
	Expires *time.Time   `json:"expires,omitempty"`
	Streams int          `json:"streams,omitempty"`
	Waiting int          `json:"waiting"`
	Open    []streamJSON `json:"open"`
}

type streamJSON struct {
	Stream    string         `json:"stream"`
	Received  int64          `json:"received"`
	Progress  *float64       `json:"progress,omitempty"`
	Throttled int            `json:"throttled"`
	Retries   int64          `json:"retries"`
	Since     time.Time      `json:"since"`
	LastError *lastErrorJSON `json:"last_error,omitempty"`
}

type checkpointJSON struct {
	ID         int64     `json:"id"`
	Taken      time.Time `json:"taken"`
	Savepoint  bool      `json:"savepoint,omitempty"`
	Bytes      int       `json:"bytes"`
	AlignedMS  int64     `json:"aligned_ms"`
	DurationMS int64     `json:"duration_ms"`
}

type destinationJSON struct {
	Destination   string         `json:"destination"`
	Rows          int64          `json:"rows"`
	Bytes         int64          `json:"bytes"`
	DeadLettered  int64          `json:"dead_lettered"`
	Created       bool           `json:"created"`
	Changes       []string       `json:"changes,omitempty"`
	AppendErrors  int64          `json:"append_errors"`
	AppendRetries int64          `json:"append_retries"`
	LastError     *lastErrorJSON `json:"last_error,omitempty"`
}

type lastErrorJSON struct {
	At      time.Time `json:"at"`
	Code    string    `json:"code"`
	Message string    `json:"message"`
}

func jobStatus(s engine.Status, tables []tableReport, reading *bigquery.SourceReport) jobStatusJSON {
	t := s.Tally
	j := jobStatusJSON{
		Job: s.Job, State: s.State.String(), Started: s.Started,
		Read: t.Read, Written: t.Written, DeadLettered: t.DeadLettered, Skipped: t.Skipped, Failed: t.Failed, Buffered: t.Lost(), Bytes: t.Bytes,
		InputBytes: s.InputBytes, TotalBytes: s.TotalBytes,
		Lanes: each(s.Lanes, laneStatus), Splits: splitsJSON(s.Splits), Destinations: each(tables, destinationStatus),
		Reading:    readingStatus(reading),
		Checkpoint: s.Checkpoint.ID, Checkpoints: s.Checkpoints, FailedCheckpoints: s.FailedCheckpoints,
		RecentCheckpoints: each(s.Recent, checkpointStatus),
		ResumedFrom:       s.ResumedFrom, StartedAnew: s.StartedAnew, Restarts: s.Restarts,
	}
	if s.LastFailure != nil {
		j.LastFailure, j.LastFailureAt = s.LastFailure.Error(), &s.LastFailureAt
	}
	return j
}

func readingStatus(r *bigquery.SourceReport) *readingJSON {
	if r == nil {
		return nil
	}
	out := &readingJSON{Session: r.Session, Streams: r.Streams, Waiting: r.Waiting, Open: each(r.Reading, streamStatus)}
	if !r.Expires.IsZero() {
		out.Expires = &r.Expires
	}
	return out
}

func streamStatus(r bigquery.ReadingReport) streamJSON {
	out := streamJSON{Stream: r.Stream, Received: r.Received, Throttled: r.Throttled, Retries: r.Retries, Since: r.Since}
	if !math.IsNaN(r.Progress) {
		out.Progress = &r.Progress
	}
	if r.LastError != nil {
		out.LastError = &lastErrorJSON{At: r.LastErrorAt, Code: r.LastErrorCode(), Message: r.LastError.Error()}
	}
	return out
}

// each never answers nil: lists are lists in JSON also when they are empty.
func each[A, B any](all []A, f func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = f(a)
	}
	return out
}

func laneStatus(l engine.LaneStatus) laneJSON {
	t := l.Tally
	return laneJSON{Lane: l.Lane, Doing: l.Doing.String(), Split: l.Split, Position: l.Position,
		Read: t.Read, Written: t.Written, DeadLettered: t.DeadLettered, Skipped: t.Skipped, Buffered: t.Lost(), Bytes: t.Bytes}
}

func checkpointStatus(c engine.CheckpointStatus) checkpointJSON {
	return checkpointJSON{ID: c.ID, Taken: c.Taken, Savepoint: c.Savepoint, Bytes: c.Bytes,
		AlignedMS: c.Aligned.Milliseconds(), DurationMS: c.Duration.Milliseconds()}
}

func destinationStatus(r tableReport) destinationJSON {
	d := destinationJSON{Destination: r.Destination.String(), Rows: r.Rows, Bytes: r.Bytes, DeadLettered: r.DeadLettered, Created: r.Created,
		Changes: r.Changes, AppendErrors: r.AppendErrors, AppendRetries: r.AppendRetries}
	if e := r.LastError; e != nil {
		d.LastError = &lastErrorJSON{At: e.At, Code: e.Code, Message: e.Text}
	}
	return d
}
