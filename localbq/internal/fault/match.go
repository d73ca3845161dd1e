package fault

import "strings"

// agrees compares everything of a match but its counts.
func (m *Match) agrees(c Call) bool {
	if c.Service == jobService && !m.ofJobs() {
		return false
	}
	return (m.Service == "" || m.Service == c.Service) &&
		(m.Method == "" || m.Method == c.Method) &&
		(m.Table == "" || sameTable(m.Table, c.Table)) &&
		(m.Stream == "" || m.Stream == c.Stream) &&
		(m.Object == "" || m.Object == c.Object) &&
		(m.StreamKind == "" || m.StreamKind == c.StreamKind) &&
		(m.Job == "" || m.Job == c.Job) &&
		(m.JobType == "" || m.JobType == c.JobType) &&
		(m.Principal == "" || m.Principal == c.Principal) &&
		(m.TraceID == "" || m.TraceID == c.TraceID) &&
		(m.MinRows == 0 || c.Rows >= m.MinRows) &&
		(m.MaxRows == 0 || c.Rows <= m.MaxRows)
}

// sameTable compares a table as a rule spells it with a resource name.
func sameTable(name, path string) bool {
	if name == path || path == "" {
		return name == path
	}
	parts := strings.Split(path, "/") // projects/p/datasets/d/tables/t
	if len(parts) != 6 {
		return false
	}
	short := parts[3] + "." + parts[5]
	return name == short || name == parts[1]+"."+short
}

// jobService is the service of what is no call but a state that a job gets into: JobPending, JobRunning, JobDone.
const jobService = "job"

// The methods of jobService. A job is PENDING before it does anything, RUNNING before it reads and writes, and done when its
// rows are visible and nobody has been told.
const (
	JobPending = "job.pending"
	JobRunning = "job.running"
	JobDone    = "job.done"
)

// ofJobs reports whether a match is of the states of jobs, which no other match picks by accident.
func (m *Match) ofJobs() bool {
	return m.Service == jobService || m.Service == "" && (m.Method == JobPending || m.Method == JobRunning || m.Method == JobDone)
}
