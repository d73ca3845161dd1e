package localbq

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/writeapi"
)

type (
	// AuditRecord is one event; AuditRow a visible row and where it came from; AuditRange rows of consecutive ids.
	AuditRecord = audit.Record
	AuditRow    = audit.Row
	AuditRange  = audit.Range
	// AuditCommit is a time at which rows of a created stream became visible.
	AuditCommit = audit.Commit
)

// Audit accounts for everything the instance did. Tables are named "dataset.table" or "project.dataset.table".
type Audit struct{ instance *Instance }

// Audit is the audit log and its checks.
func (i *Instance) Audit() *Audit { return &Audit{i} }

// Records are all records in order, those of unfinished calls as they are now.
func (a *Audit) Records() iter.Seq2[*AuditRecord, error] { return a.instance.audit.Records() }

// WriteTo exports the records as JSON lines.
func (a *Audit) WriteTo(w io.Writer) (int64, error) { return a.instance.audit.WriteTo(w) }

// Dropped is how many records the log has lost to its bound; the checks are only as good as the log is whole.
func (a *Audit) Dropped() int64 { return a.instance.audit.Dropped() }

// Visible are the rows that the log says are visible, with their provenance, by id.
func (a *Audit) Visible(table string) ([]AuditRow, error) {
	return check(a, table, a.instance.audit.Visible)
}

// AppliedTwice are visible rows whose bytes equal those of a visible row of another append, in groups.
func (a *Audit) AppliedTwice(table string) ([][]AuditRow, error) {
	return check(a, table, a.instance.audit.AppliedTwice)
}

// AckedNotVisible are rows that a client was told are written and that the table does not have.
func (a *Audit) AckedNotVisible(table string) ([]AuditRow, error) {
	return check(a, table, a.instance.audit.AckedNotVisible)
}

// VisibleNeverAcked are rows of the table whose writer was never told so, which is legitimate.
func (a *Audit) VisibleNeverAcked(table string) ([]AuditRow, error) {
	return check(a, table, a.instance.audit.VisibleNeverAcked)
}

// Unaccounted are ids of rows that the table has and the log knows nothing of.
func (a *Audit) Unaccounted(table string) ([]AuditRange, error) {
	return check(a, table, a.instance.audit.Unaccounted)
}

// Commits are the times at which rows of a created stream became visible: its flushes, its commit, or the appends to one of
// type COMMITTED. The stream is named as in CreateWriteStream's answer.
func (a *Audit) Commits(stream string) ([]AuditCommit, error) {
	return a.instance.audit.Commits(stream)
}

// Gaps are the offsets of a created stream that holds rows there, while no record of the log is of their append.
func (a *Audit) Gaps(stream string) ([]AuditRange, error) {
	end, err := writeapi.End(a.instance.store, stream)
	if err != nil {
		return nil, err
	}
	return a.instance.audit.Gaps(stream, end)
}

func check[T any](a *Audit, table string, run func(audit.Table) (T, error)) (T, error) {
	var none T
	t, err := a.instance.table(table)
	if err != nil {
		return none, err
	}
	if dropped := a.Dropped(); dropped > 0 {
		return none, fmt.Errorf("audit of %s: the log has lost its %d oldest records: give the instance a folder, or raise Config.Audit.MaxBytes", table, dropped)
	}
	return run(auditTable(t))
}

// auditTable is a table as it is, for the log to compare itself with.
func auditTable(t *store.Table) audit.Table {
	out := audit.Table{Path: t.Ref().Path(), Instance: t.Instance()}
	for _, live := range t.Live() {
		out.Live = append(out.Live, audit.Range(live))
	}
	return out
}

// JobsByID are the changes of rows that each job made, by the job's name, p:LOC.id. A job has one change of a table, or two
// where it took rows away first.
func (a *Audit) JobsByID() (map[string][]AuditRecord, error) {
	out := map[string][]AuditRecord{}
	for r, err := range a.Records() {
		if err != nil {
			return nil, err
		}
		if r.Job != "" && (r.Effect == audit.Visible || r.Effect == audit.Removed) {
			out[r.Job] = append(out[r.Job], *r)
		}
	}
	return out, nil
}

// ObjectsRead are the objects that a job read, gs://bucket/object#generation.
func (a *Audit) ObjectsRead(job string) ([]string, error) {
	for r, err := range a.Records() {
		if err != nil {
			return nil, err
		}
		if r.Job == job && len(r.Objects) > 0 {
			return r.Objects, nil
		}
	}
	return nil, nil
}

// jobReads notes the objects of a job.
func (i *Instance) jobReads(job string, found []objects.Object) {
	r := audit.Record{RPC: "job", Code: "OK", Effect: audit.None, Job: job}
	for _, o := range found {
		r.Objects = append(r.Objects, fmt.Sprintf("gs://%s/%s#%d", o.Bucket, o.Name, o.Generation))
	}
	i.audit.Begin(r).Done(audit.Sent)
}

// Exactly is the answer of ExactlyOnce.
type Exactly struct {
	Missing []string // expected, not there
	Twice   []string // there more than once
	Extra   []string // there, not expected
}

// OK reports whether every expected key is there once, and no other.
func (e Exactly) OK() bool { return len(e.Missing)+len(e.Twice)+len(e.Extra) == 0 }

// ExactlyOnce compares the keys of the visible rows with those expected. The key is a top-level column, as text.
func (a *Audit) ExactlyOnce(table, column string, expected []string) (Exactly, error) {
	snapshot, err := a.instance.snapshot(table)
	if err != nil {
		return Exactly{}, err
	}
	at := snapshot.Info.Schema.Index(column)
	if at < 0 {
		return Exactly{}, fmt.Errorf("table %s has no column %q", table, column)
	}
	seen := map[string]int{}
	for _, part := range snapshot.Parts() {
		values := part.Batch.Column(at)
		for row := range values.Len() {
			seen[values.ValueStr(row)]++
		}
	}
	return compare(seen, expected), nil
}

func compare(seen map[string]int, expected []string) (out Exactly) {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(expected))) {
		switch n := seen[key]; {
		case n == 0:
			out.Missing = append(out.Missing, key)
		case n > 1:
			out.Twice = append(out.Twice, key)
		}
		delete(seen, key)
	}
	out.Extra = slices.SortedFunc(maps.Keys(seen), cmp.Compare[string])
	return out
}

// wrote accounts for rows that came by another way than AppendRows.
func (i *Instance) wrote(t *store.Table, w store.Written) {
	for _, r := range effects(t, w) {
		r.RPC, r.Code = "write", "OK"
		i.audit.Begin(r).Done(audit.Sent)
	}
}

// effects are what a write did to a table, as records: rows taken away, then rows added.
func effects(t *store.Table, w store.Written) (out []audit.Record) {
	base := audit.Record{Table: t.Ref().Path(), Instance: t.Instance(), Before: w.Before, After: w.After, Shown: writeapi.Shown(t, w), Job: w.Job}
	if w.Stream != "" {
		base.At = &w.Offset
	}
	if w.Removed > 0 {
		removed := base
		removed.Effect, removed.Count = audit.Removed, w.First
		out = append(out, removed)
	}
	if w.Count == 0 && len(w.Gone) > 0 {
		removed := base
		removed.Effect, removed.Removed = audit.Removed, writeapi.Removed(w)
		out = append(out, removed)
	}
	if w.Count > 0 {
		base.Effect, base.First, base.Count, base.Removed = audit.Visible, w.First, w.Count, writeapi.Removed(w)
		if w.Hidden {
			base.Effect = audit.Applied
		}
		out = append(out, base)
	}
	return out
}
