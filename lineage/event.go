package lineage

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// EventType is where a run is at.
type EventType string

const (
	Start    EventType = "START"
	Running  EventType = "RUNNING"
	Complete EventType = "COMPLETE"
	Abort    EventType = "ABORT" // stopped on purpose
	Fail     EventType = "FAIL"
)

const (
	// Producer says who tells.
	Producer = "https://github.com/millrace-dev/millrace"

	coreURL  = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
	facetURL = "https://openlineage.io/spec/facets/"
	gcpURL   = Producer + "/blob/main/docs/reference/gcp-dataset-facet.json"
)

// RunEvent is one event of a run.
type RunEvent struct {
	Type    EventType `json:"eventType"`
	Time    time.Time `json:"eventTime"`
	Run     Run       `json:"run"`
	Job     Job       `json:"job"`
	Inputs  []Input   `json:"inputs"`
	Outputs []Output  `json:"outputs"`

	Producer  string `json:"producer"`
	SchemaURL string `json:"schemaURL"`
}

// NewRunEvent makes an event without datasets.
func NewRunEvent(t EventType, at time.Time, run Run, job Job) *RunEvent {
	return &RunEvent{Type: t, Time: at.UTC(), Run: run, Job: job, Inputs: []Input{}, Outputs: []Output{}, Producer: Producer, SchemaURL: coreURL}
}

// Run is one run of a job: its events share the id.
type Run struct {
	ID     string    `json:"runId"` // a UUID
	Facets RunFacets `json:"facets"`
}

// NewRunID makes a UUID of version 7, which begins with the time, so that runs sort by their beginnings (RFC 9562, 5.7).
func NewRunID(at time.Time) string {
	var id [16]byte
	rand.Read(id[:])
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// Job is what runs, known by its namespace and name.
type Job struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Facets    JobFacets `json:"facets"`
}

// Dataset names what is read or written, as OpenLineage's page on naming says: a table of BigQuery is
// project.dataset.table in the namespace "bigquery", a local file its path in the namespace "file".
type Dataset struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Facets    DatasetFacets `json:"facets"`
}

// Input is a dataset that is read.
type Input struct {
	Dataset
	InputFacets InputFacets `json:"inputFacets"`
}

// Output is a dataset that is written.
type Output struct {
	Dataset
	OutputFacets OutputFacets `json:"outputFacets"`
}
