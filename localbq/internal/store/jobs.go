package store

import (
	"encoding/json"
	"maps"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Job is what the store keeps of a job: a text of its owner's under the job's name. It is kept for good, because a job's id is
// used up for good.
type Job struct {
	Name   string          `json:"name"` // p:LOC.id
	Record json.RawMessage `json:"record"`
	// Version is the one at which the record was written: that of the rows it was written with.
	Version int64 `json:"version,omitempty"`
}

// ClaimJob keeps a job under a name that no job has had, and refuses with duplicate one that has.
func (s *Store) ClaimJob(j Job) error {
	_, err := s.commit(&putJob{job: j, claim: true})
	return err
}

// PutJob replaces the record of a job.
func (s *Store) PutJob(j Job) error {
	_, err := s.commit(&putJob{job: j})
	return err
}

// Jobs are all jobs by name.
func (s *Store) Jobs() map[string]Job {
	s.catalog.RLock()
	defer s.catalog.RUnlock()
	return maps.Clone(s.jobs)
}

type putJob struct {
	job   Job
	claim bool
}

func (c *putJob) prepare(s *Store, version int64) error {
	if _, used := s.jobs[c.job.Name]; used && c.claim {
		return refusal.New(refusal.Duplicate, "Already Exists: Job %s", c.job.Name)
	}
	c.job.Version = version
	return nil
}

func (c *putJob) append(buf []byte, version int64) []byte {
	return catalogRecord{Op: opPutJob, Version: version, Job: &c.job}.append(buf)
}

func (c *putJob) publish(s *Store, _ int64) { s.keepJob(c.job) }

func (s *Store) keepJob(j Job) {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	s.jobs[j.Name] = j
}
