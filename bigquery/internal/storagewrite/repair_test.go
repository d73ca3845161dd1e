package storagewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/internal/retry"
)

// A repair is driven by a script: what is in flight, and how openings, appends and creations answer, the last answer for
// ever. Answers are "ok", a status code, "rows N…" (the rows refused), "MM" (rows have more columns than the table), "dead",
// "closed" or "plain" (an error without a status). Reconciliations answer "updated", "unchanged", "created" or a status code.
type script struct {
	begin    string   // answer that began it
	open     bool     // it began with a failed opening
	siblings []string // answers of the destination's other appends
	rebuilds []string
	appends  []string
	creates  []string
	changes  []string // of the table; nil forbids them
	never    bool     // CreateNever
	budgets  [2]int   // rounds of recovery and of schema wait, 3 each when 0
	rows     int      // of the failed batch, 1 when 0
}

func scripted(s string) *verdict {
	word, rest, _ := strings.Cut(s, " ")
	switch word {
	case "ok":
		return nil
	case "dead":
		return classifyError(ErrResponseTimeout)
	case "closed":
		return classifyError(closedBy(ErrResponseTimeout))
	case "MM":
		return classifyAnswer(answer(mismatch), true)
	case "plain":
		return classifyError(errors.New("plain"))
	case "rows":
		var rows []int64
		for _, f := range strings.Fields(rest) {
			var n int64
			fmt.Sscan(f, &n)
			rows = append(rows, n)
		}
		return classifyAnswer(answer(nil, rows...), false)
	}
	if d, ok := scriptedDetails[word]; ok {
		return classifyAnswer(answer(detailed(d.code, d.storage)), true)
	}
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(`"` + word + `"`)); err != nil {
		panic(err)
	}
	return classifyError(status.Error(c, s))
}

// scriptedDetails are the storage errors that scripts know.
var scriptedDetails = map[string]struct {
	code    codes.Code
	storage storagepb.StorageError_StorageErrorCode
}{
	"exists":    {codes.AlreadyExists, storagepb.StorageError_OFFSET_ALREADY_EXISTS},
	"beyond":    {codes.OutOfRange, storagepb.StorageError_OFFSET_OUT_OF_RANGE},
	"finalized": {codes.InvalidArgument, storagepb.StorageError_STREAM_FINALIZED},
	"gone":      {codes.InvalidArgument, storagepb.StorageError_STREAM_NOT_FOUND},
	"badstate":  {codes.InvalidArgument, storagepb.StorageError_INVALID_STREAM_STATE},
}

func pop(answers *[]string) string {
	a := (*answers)[0]
	if len(*answers) > 1 {
		*answers = (*answers)[1:]
	}
	return a
}

// run drives a repair and tells its steps. Batches are written as their first row and their number of rows.
func (s script) run() (*repair, []string) {
	cache := &bufferCache{bytes: 1 << 10}
	name := func(b *batch) string {
		first, _, _ := nextRow(b.rows.data)
		return fmt.Sprintf("%s×%d", first, b.count)
	}
	mk := func(letter string, n int) *batch {
		b := &batch{rows: cache.get(16)}
		for i := range n {
			b.push([]byte(fmt.Sprintf("%s%d", letter, i)))
		}
		return b
	}
	if s.budgets == [2]int{} {
		s.budgets = [2]int{3, 3}
	}
	recovery := retry.Schedule{Initial: time.Second, Attempts: s.budgets[0]}
	r := &repair{may: allowed{create: !s.never, update: s.changes != nil}, schedule: recovery, recovery: recovery,
		schemaWait: retry.Schedule{Initial: time.Minute, Attempts: s.budgets[1]}}
	if s.open {
		r.unopened(scripted(s.begin))
	} else {
		r.failed(mk("a", max(s.rows, 1)), scripted(s.begin))
	}
	var steps []string
	say := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	siblings := 0
	for {
		switch r.step {
		case stepCollect:
			if siblings == len(s.siblings) {
				r.collected()
				continue
			}
			siblings++
			a := s.siblings[siblings-1]
			say("sibling %s", a)
			if v := scripted(a); v != nil {
				r.sibling(mk(string(rune('a'+siblings)), 2), v)
			}
		case stepRoute:
			bad := map[int]bool{}
			for _, i := range r.verdict.refused() {
				if i < r.routing.count {
					bad[i] = true
				}
			}
			say("route %d of %s", len(bad), name(r.routing))
			r.routed(r.routing.without(bad, cache), len(bad))
		case stepCreate:
			a := pop(&s.creates)
			say("create %s", a)
			if v := scripted(a); v != nil {
				r.created(v.err)
			} else {
				r.created(nil)
			}
		case stepReconcile:
			a := pop(&s.changes)
			say("reconcile %s", a)
			switch i := slices.Index([]string{"unchanged", "updated", "created"}, a); {
			case i >= 0:
				r.reconciled(tableadmin.Outcome(i), nil)
			default:
				r.reconciled(tableadmin.Unchanged, scripted(a).err)
			}
		case stepRebuild:
			a := "ok"
			if len(s.rebuilds) > 0 {
				a = pop(&s.rebuilds)
			}
			say("open %s", a)
			r.rebuilt(scripted(a))
		case stepAppend:
			a := pop(&s.appends)
			say("append %s %s", name(r.batches[0]), a)
			r.appended(scripted(a))
		case stepWait:
			word := "wait"
			if r.schedule.Initial == time.Minute {
				word = "wait long"
			}
			say("%s", word)
			r.waited()
		case stepDone:
			say("done")
			return r, steps
		case stepFail:
			say("fail attempts=%d op=%s", r.attempt, r.op)
			return r, steps
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script
		want string
	}{
		"SW-26_unavailable once": {script{begin: "UNAVAILABLE", appends: []string{"ok"}},
			"open ok; append a0×1 ok; done"},
		"SW-27_unavailable always": {script{begin: "UNAVAILABLE", appends: []string{"UNAVAILABLE"}},
			"open ok; append a0×1 UNAVAILABLE; wait; open ok; append a0×1 UNAVAILABLE; wait; open ok; append a0×1 UNAVAILABLE; fail attempts=3 op=re-append"},
		"SW-28_no status":        {script{begin: "plain"}, "fail attempts=0 op=append"},
		"SW-29_invalid argument": {script{begin: "INVALID_ARGUMENT"}, "fail attempts=0 op=append"},
		"SW-33_dead connection": {script{begin: "dead", siblings: []string{"dead"}, appends: []string{"ok"}},
			"sibling dead; open ok; append a0×1 ok; append b0×2 ok; done"},
		"SW-34_two batches": {script{begin: "UNAVAILABLE", siblings: []string{"ok", "UNAVAILABLE"}, appends: []string{"ok"}},
			"sibling ok; sibling UNAVAILABLE; open ok; append a0×1 ok; append c0×2 ok; done"},
		"SW-35_sibling is terminal": {script{begin: "UNAVAILABLE", siblings: []string{"INVALID_ARGUMENT"}},
			"sibling INVALID_ARGUMENT; fail attempts=0 op=append"},
		"SW-36_sibling has a bad row": {script{begin: "UNAVAILABLE", siblings: []string{"rows 0"}, appends: []string{"ok"}},
			"sibling rows 0; route 1 of b0×2; open ok; append a0×1 ok; append b1×1 ok; done"},
		"SW-40_open fails once": {script{begin: "UNAVAILABLE", rebuilds: []string{"UNAVAILABLE", "ok"}, appends: []string{"ok"}},
			"open UNAVAILABLE; wait; open ok; append a0×1 ok; done"},
		"SW-41_first open unavailable": {script{open: true, begin: "UNAVAILABLE"}, "open ok; done"},
		"SW-41_first open denied, never create": {script{open: true, never: true, begin: "PERMISSION_DENIED"},
			"fail attempts=0 op=open write stream"},
		"SW-42_bad row": {script{begin: "rows 1", rows: 3, appends: []string{"ok"}},
			"route 1 of a0×3; open ok; append a0×2 ok; done"},
		"SW-43_all bad": {script{begin: "rows 0 1", rows: 2}, "route 2 of a0×2; open ok; done"},
		"SW-47_no such row, twice": {script{begin: "rows 5", appends: []string{"rows 5"}},
			"route 0 of a0×1; open ok; append a0×1 rows 5; route 0 of a0×1; fail attempts=1 op=re-append"},
		"SW-47_one of them exists": {script{begin: "rows 0 9", rows: 2, appends: []string{"ok"}},
			"route 1 of a0×2; open ok; append a1×1 ok; done"},
		"SW-49_twice": {script{begin: "rows 0", rows: 3, appends: []string{"rows 0", "ok"}},
			"route 1 of a0×3; open ok; append a1×2 rows 0; route 1 of a1×2; append a2×1 ok; done"},
		"SW-53_masked": {script{begin: "PERMISSION_DENIED", creates: []string{"ok"}, appends: []string{"ok"}},
			"create ok; open ok; append a0×1 ok; done"},
		"SW-53_not found": {script{begin: "NOT_FOUND", creates: []string{"ok"}, appends: []string{"ok"}},
			"create ok; open ok; append a0×1 ok; done"},
		"SW-54_masked twice": {script{begin: "PERMISSION_DENIED", creates: []string{"ok"}, appends: []string{"PERMISSION_DENIED", "ok"}},
			"create ok; open ok; append a0×1 PERMISSION_DENIED; wait; open ok; append a0×1 ok; done"},
		"SW-55_masked always": {script{begin: "PERMISSION_DENIED", creates: []string{"ok"}, appends: []string{"PERMISSION_DENIED"}},
			"create ok; open ok; append a0×1 PERMISSION_DENIED; wait; open ok; append a0×1 PERMISSION_DENIED; wait; open ok; append a0×1 PERMISSION_DENIED; fail attempts=3 op=re-append"},
		"SW-56_never create": {script{never: true, begin: "NOT_FOUND"}, "fail attempts=0 op=append"},
		"SW-57_open masked": {script{open: true, begin: "PERMISSION_DENIED", creates: []string{"ok"}},
			"create ok; open ok; done"},
		"SW-58_creation refused": {script{open: true, begin: "PERMISSION_DENIED", creates: []string{"FAILED_PRECONDITION"}},
			"create FAILED_PRECONDITION; fail attempts=0 op=open write stream"},
		"SW-64_unavailable, then masked": {script{begin: "UNAVAILABLE", creates: []string{"ok"}, appends: []string{"PERMISSION_DENIED", "ok"}},
			"open ok; append a0×1 PERMISSION_DENIED; create ok; open ok; append a0×1 ok; done"},
		"masked until the budget is spent": {script{begin: "UNAVAILABLE", creates: []string{"ok"}, appends: []string{"PERMISSION_DENIED"}},
			"open ok; append a0×1 PERMISSION_DENIED; create ok; open ok; append a0×1 PERMISSION_DENIED; wait; open ok; append a0×1 PERMISSION_DENIED; fail attempts=3 op=re-append"},
		"created in the last round": {script{begin: "UNAVAILABLE", creates: []string{"ok"}, appends: []string{"UNAVAILABLE", "UNAVAILABLE", "NOT_FOUND"}},
			"open ok; append a0×1 UNAVAILABLE; wait; open ok; append a0×1 UNAVAILABLE; wait; open ok; append a0×1 NOT_FOUND; create ok; fail attempts=3 op=re-append"},
		"siblings are in before the table is made": {script{begin: "NOT_FOUND", siblings: []string{"NOT_FOUND"}, creates: []string{"ok"}, appends: []string{"ok"}},
			"sibling NOT_FOUND; create ok; open ok; append a0×1 ok; append b0×2 ok; done"},
		"refused while masked for good": {script{begin: "UNAVAILABLE", never: true, appends: []string{"PERMISSION_DENIED"}},
			"open ok; append a0×1 PERMISSION_DENIED; fail attempts=1 op=re-append"},
		"SW-80_mismatch, updates off": {script{begin: "MM"}, "fail attempts=0 op=append"},
		"SW-70_widened": {script{begin: "MM", changes: []string{"updated"}, appends: []string{"ok"}},
			"reconcile updated; open ok; append a0×1 ok; done"},
		"SW-71_wide enough already": {script{begin: "MM", changes: []string{"unchanged"}, appends: []string{"MM", "ok"}},
			"reconcile unchanged; open ok; append a0×1 MM; wait long; open ok; append a0×1 ok; done"},
		"SW-74_mismatch always": {script{begin: "MM", changes: []string{"updated"}, appends: []string{"MM"}},
			"reconcile updated; open ok; append a0×1 MM; wait long; open ok; append a0×1 MM; wait long; open ok; append a0×1 MM; fail attempts=3 op=re-append"},
		"SW-73_SW-77_SW-84_cannot be changed": {script{begin: "MM", changes: []string{"FAILED_PRECONDITION"}},
			"reconcile FAILED_PRECONDITION; fail attempts=0 op=append"},
		"SW-75_absent when looked at, then masked": {script{begin: "MM", changes: []string{"created"}, appends: []string{"PERMISSION_DENIED", "ok"}},
			"reconcile created; open ok; append a0×1 PERMISSION_DENIED; wait; open ok; append a0×1 ok; done"},
		"SW-85_long budget is kept": {script{begin: "MM", changes: []string{"updated"}, budgets: [2]int{3, 10},
			appends: []string{"UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "ok"}},
			"reconcile updated; open ok; append a0×1 UNAVAILABLE; wait long; open ok; append a0×1 UNAVAILABLE; wait long; open ok; append a0×1 UNAVAILABLE; " +
				"wait long; open ok; append a0×1 UNAVAILABLE; wait long; open ok; append a0×1 ok; done"},
		"SW-65_masked for good after a change": {script{begin: "MM", changes: []string{"updated"}, creates: []string{"ok"}, budgets: [2]int{2, 20},
			appends: []string{"PERMISSION_DENIED"}},
			"reconcile updated; open ok; append a0×1 PERMISSION_DENIED; create ok; open ok; append a0×1 PERMISSION_DENIED; fail attempts=2 op=re-append"},
		"SW-66_down and up": {script{begin: "MM", changes: []string{"updated"}, creates: []string{"ok"}, budgets: [2]int{2, 20},
			appends: []string{"PERMISSION_DENIED", "MM", "MM", "MM", "ok"}},
			"reconcile updated; open ok; append a0×1 PERMISSION_DENIED; create ok; open ok; append a0×1 MM; wait long; open ok; append a0×1 MM; " +
				"wait long; open ok; append a0×1 MM; wait long; open ok; append a0×1 ok; done"},
		"SW-67_masked when opening": {script{begin: "MM", changes: []string{"updated"}, creates: []string{"ok"}, budgets: [2]int{2, 20},
			rebuilds: []string{"PERMISSION_DENIED"}},
			"reconcile updated; open PERMISSION_DENIED; create ok; open PERMISSION_DENIED; fail attempts=2 op=open write stream"},
		"mismatch after a failure in passing": {script{begin: "UNAVAILABLE", changes: []string{"updated"}, appends: []string{"MM", "MM", "ok"}},
			"open ok; append a0×1 MM; reconcile updated; wait long; open ok; append a0×1 MM; wait long; open ok; append a0×1 ok; done"},
		"mismatch in the last round of recovery": {script{begin: "UNAVAILABLE", changes: []string{"updated"}, budgets: [2]int{1, 2}, appends: []string{"MM", "ok"}},
			"open ok; append a0×1 MM; reconcile updated; wait long; open ok; append a0×1 ok; done"},
		"a round cannot change the table": {script{begin: "UNAVAILABLE", changes: []string{"FAILED_PRECONDITION"}, appends: []string{"MM"}},
			"open ok; append a0×1 MM; reconcile FAILED_PRECONDITION; fail attempts=1 op=re-append"},
		"siblings are in before the table is changed": {script{begin: "MM", siblings: []string{"MM", "rows 0", "ok"}, changes: []string{"updated"}, appends: []string{"ok"}},
			"sibling MM; sibling rows 0; route 1 of c0×2; sibling ok; reconcile updated; open ok; append a0×1 ok; append b0×2 ok; append c1×1 ok; done"},
		"a table goes away while it is waited for": {script{begin: "MM", changes: []string{"updated"}, creates: []string{"ok"}, never: true, appends: []string{"MM", "NOT_FOUND"}},
			"reconcile updated; open ok; append a0×1 MM; wait long; open ok; append a0×1 NOT_FOUND; fail attempts=2 op=re-append"},
		"bad rows while waiting": {script{begin: "MM", rows: 2, changes: []string{"updated"}, appends: []string{"rows 0", "MM", "ok"}},
			"reconcile updated; open ok; append a0×2 rows 0; route 1 of a0×2; append a1×1 MM; wait long; open ok; append a1×1 ok; done"},
	} {
		t.Run(name, func(t *testing.T) {
			_, steps := c.run()
			if d := cmp.Diff(strings.Split(c.want, "; "), steps); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRepairTellsWhy(t *testing.T) {
	t.Parallel()
	r, _ := script{begin: "UNAVAILABLE", appends: []string{"UNAVAILABLE"}}.run()
	if !errors.Is(r.err, retry.ErrBudgetSpent) {
		t.Errorf("SW-27: %v", r.err)
	}
	r, _ = script{begin: "INVALID_ARGUMENT"}.run()
	if errors.Is(r.err, retry.ErrBudgetSpent) || status.Code(r.err) != codes.InvalidArgument {
		t.Errorf("SW-29: %v", r.err)
	}
	r, _ = script{begin: "rows 5", appends: []string{"rows 5"}}.run()
	if !errors.Is(r.err, ErrNoProgress) {
		t.Errorf("SW-47: %v", r.err)
	}
	r, _ = script{open: true, begin: "PERMISSION_DENIED why", creates: []string{"FAILED_PRECONDITION first"}}.run()
	if first, why := strings.Index(r.err.Error(), "first"), strings.Index(r.err.Error(), "why"); first < 0 || why < first {
		t.Errorf("SW-58: %v", r.err)
	}
}
