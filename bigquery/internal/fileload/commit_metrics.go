package fileload

import (
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// The instruments of the committer, which is one for the whole sink: they carry the labels job and write_method.
var (
	loadJobsSubmitted = stream.Instrument{Name: "millrace.bigquery.sink.load_jobs_submitted", Unit: "1",
		Help: "Load jobs of commits that were submitted or found to be there already, copies and queries not among them."}
	activeDestinations = stream.Instrument{Name: "millrace.bigquery.sink.active_destinations", Unit: "1",
		Help: "Destinations that a commit is acting for right now."}
	queuedDestinations = stream.Instrument{Name: "millrace.bigquery.sink.queued_destinations", Unit: "1",
		Help: "Destinations that wait for one of those to be done."}
	pendingJobs = stream.Instrument{Name: "millrace.bigquery.sink.pending_jobs", Unit: "1",
		Help: "Jobs of commits that are not known to have ended."}
	lastCommitDuration = stream.Instrument{Name: "millrace.bigquery.sink.last_commit_duration_ms", Unit: "ms",
		Help: "Time of the newest commit that succeeded."}
)

// CommitInstruments lists them all.
var CommitInstruments = []stream.Instrument{loadJobsSubmitted, activeDestinations, queuedDestinations, pendingJobs, lastCommitDuration}

// commitMeters are the series of a committer.
type commitMeters struct {
	loads                             stream.Counter
	active, queued, pending, duration stream.Gauge
}

func newCommitMeters(m stream.Meter, job string) commitMeters {
	labels := []stream.Label{{Key: "job", Value: job}, {Key: "write_method", Value: Method}}
	return commitMeters{
		loads:  m.Counter(loadJobsSubmitted, labels...),
		active: m.Gauge(activeDestinations, labels...), queued: m.Gauge(queuedDestinations, labels...),
		pending: m.Gauge(pendingJobs, labels...), duration: m.Gauge(lastCommitDuration, labels...),
	}
}

// quiet is after a commit, however it ended.
func (m *commitMeters) quiet() {
	m.active.Set(0)
	m.queued.Set(0)
	m.pending.Set(0)
}

func (m *commitMeters) took(d time.Duration) { m.duration.Set(d.Milliseconds()) }
