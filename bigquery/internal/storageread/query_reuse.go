package storageread

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"
)

// A query that may be reused has job ids that each attempt of a job of that name comes to by itself: the name, a digest of
// the query and how it runs, the window of time that the attempt falls into, and a number for what became of the ids
// before it, because BigQuery gives an id once. They are also names of tables, hence without hyphens.

// maxLinks is how many ids of one window are looked at.
const maxLinks = 6

// maxNameRunes is how much of a job's name an id shows; the digest holds all of it.
const maxNameRunes = 64

// queryBase is the first id of a window. bucket numbers the window.
func (q *Query) base(name string, bucket int64) string {
	shown := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	return jobPrefix + shown[:min(len(shown), maxNameRunes)] + "_" + q.digest(name) + "_" + strconv.FormatInt(bucket, 10)
}

func (q *Query) bucket(now time.Time) int64 {
	window := q.ReuseWithin.Milliseconds()
	ms := now.UnixMilli()
	if ms < 0 {
		ms -= window - 1
	}
	return ms / window
}

// digest is of everything that makes two runs the same. What was added to it later is left out where it is the default, so
// that ids stay what they were.
func (q *Query) digest(name string) string {
	var b []byte
	field := func(s string) { b = append(strconv.AppendInt(b, int64(len(s)), 10), ":"+s...) }
	optional := func(s string) {
		if s == "" {
			b = append(b, "-:"...)
			return
		}
		field(s)
	}
	field(name)
	field(q.SQL)
	field(q.Project)
	optional(q.Location)
	optional(q.Landing.Dataset)
	field(strconv.FormatInt(q.ReuseWithin.Milliseconds(), 10))
	if l := q.Landing; l.named() && l.Project != q.Project {
		field("resultProject=" + l.Project)
	}
	if l := q.Landing; l.named() && l.Expiration != DefaultExpiration {
		field("expirationMs=" + strconv.FormatInt(l.Expiration.Milliseconds(), 10))
	}
	if q.Batch {
		field("priority=batch")
	}
	if len(q.Parameters) > 0 {
		text, _ := json.Marshal(q.Parameters) // of strings alone, which never fails
		field("parameters=" + string(text))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// link is the id behind n others of its window.
func link(base string, n int) string {
	if n == 0 {
		return base
	}
	return base + "_r" + strconv.Itoa(n)
}

// usable says what can be done with a job that was looked up.
type usable uint8

const (
	adopt usable = iota + 1 // read its result, or wait for it
	next                    // of no use: the next id is looked at
)

// reuse goes through the ids of this window: the first that runs or has a result is taken, the first that nobody has used
// is submitted. Where the window has just begun, the one before may have a job that is not too old.
func (r *queryRun) reuse(ctx context.Context, name string) (foundJob, error) {
	bucket := r.query.bucket(r.now())
	base := r.query.base(name, bucket)
	var last error
	for n := range maxLinks {
		j := r.job(link(base, n))
		job, err := j.get(ctx)
		switch {
		case isHTTP(err, http.StatusNotFound):
			found, why, err := r.unused(ctx, j, n, r.query.base(name, bucket-1))
			if err != nil || found.job != nil {
				return found, err
			}
			last = why
			continue
		case err != nil:
			return foundJob{}, err
		}
		verdict, why, err := r.judge(ctx, j, job)
		switch {
		case err != nil:
			return foundJob{}, err
		case verdict == adopt:
			return r.adopted(ctx, j), nil
		}
		last = why
	}
	return foundJob{}, fmt.Errorf("none of the %d query jobs %s, %s_r1 and so on can be used, and they are all that this window has: "+
		"change the query or the job's name, or wait until the window of %v is over; the last: %w", maxLinks, base, base, r.query.ReuseWithin, last)
}

func (r *queryRun) adopted(ctx context.Context, j *queryJob) foundJob {
	r.log.InfoContext(ctx, "using the query job of an earlier attempt", "job_id", j.id, "project", j.query.Project, "location", j.location)
	return foundJob{job: j, reattached: true}
}

// unused is for an id that nobody has used: with the first of a window it looks back, else it submits. Somebody else may
// have been faster; then why says what their job is of no use for.
func (r *queryRun) unused(ctx context.Context, j *queryJob, n int, before string) (found foundJob, why, err error) {
	if n == 0 {
		if found, err := r.lookBack(ctx, before); err != nil || found.job != nil {
			return found, nil, err
		}
	}
	if err := r.submit(ctx, j); err != nil {
		return foundJob{}, nil, err
	}
	if !j.taken {
		return foundJob{job: j}, nil, nil
	}
	taken := fmt.Errorf("submit the query job %s: the id has been used already", j.id)
	job, err := j.get(ctx)
	if isHTTP(err, http.StatusNotFound) {
		return foundJob{}, nil, fmt.Errorf("%w, and the job is not in the location %q: expected the location that the query runs in: %w", taken, j.location, err)
	}
	if err != nil {
		return foundJob{}, nil, errors.Join(taken, err)
	}
	verdict, why, err := r.judge(ctx, j, job)
	if err != nil || verdict != adopt {
		return foundJob{}, why, err
	}
	return r.adopted(ctx, j), nil, nil
}

// judge says whether the result of a job can be read, now or when it has ended.
func (r *queryRun) judge(ctx context.Context, j *queryJob, job *bqrest.Job) (usable, error, error) {
	if !done(job) {
		return adopt, nil, nil
	}
	if failed := j.failure(job); failed != nil {
		r.log.WarnContext(ctx, "the query job of an earlier attempt has failed: looking at the next", "job_id", j.id, "error", failed)
		return next, failed, nil
	}
	dst, err := j.result(job)
	if err != nil {
		return 0, nil, err
	}
	switch _, err := r.tableAt(ctx, dst); {
	case isHTTP(err, http.StatusNotFound):
		r.log.WarnContext(ctx, "the result of an earlier attempt's query job is gone: looking at the next", "job_id", j.id, "destination", dst.String())
		return next, fmt.Errorf("the query job %s left its result in %s, which is gone", j.id, dst), nil
	case err != nil:
		return 0, nil, err
	}
	return adopt, nil, nil
}

// lookBack goes through the ids of the window before, of which none is ever submitted.
func (r *queryRun) lookBack(ctx context.Context, base string) (foundJob, error) {
	for n := range maxLinks {
		j := r.job(link(base, n))
		job, err := j.get(ctx)
		if isHTTP(err, http.StatusNotFound) {
			return foundJob{}, nil
		}
		if err != nil {
			return foundJob{}, err
		}
		if done(job) && j.failure(job) != nil {
			continue
		}
		if !r.young(job) {
			return foundJob{}, nil
		}
		verdict, _, err := r.judge(ctx, j, job)
		switch {
		case err != nil:
			return foundJob{}, err
		case verdict == adopt:
			return r.adopted(ctx, j), nil
		}
	}
	return foundJob{}, nil
}

// young reports whether a job was created within the window before now. Clocks differ, so one in the future is.
func (r *queryRun) young(job *bqrest.Job) bool {
	if job.Statistics == nil || job.Statistics.CreationTime == 0 {
		return false
	}
	return r.now().Sub(time.UnixMilli(job.Statistics.CreationTime)) <= r.query.ReuseWithin
}
