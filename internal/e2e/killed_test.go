package e2e

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	official "cloud.google.com/go/bigquery"
	"cloud.google.com/go/storage"
	"github.com/apache/arrow-go/v18/arrow/array"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

var (
	points   = flag.Int("points", 1, "at how many steps of its calls each job of the crash suite is killed; 0 is all of them")
	instants = flag.Int("instants", 1, "at how many random instants each job of the crash suite is killed")
	seed     = flag.Uint64("seed", 0, "seed of both; 0 picks one")
)

const (
	exactlyOnce = "exactly-once"
	atLeastOnce = "default"
	// Files are loaded at each checkpoint, and added; or at the end of the input, and replace what there was.
	fileLoads      = "file-loads"
	fileLoadsAtEnd = "file-loads at the end"
)

// TestKilled kills a job over five tables, which it creates and of which each gets a column on the way, in three lanes and
// through twenty checkpoints, until a process gets done. With exactly-once and file loads every row is visible once, in its own
// table; with the default stream none is lost. File loads take the way over temporary tables for one table of each lane's two.
func TestKilled(t *testing.T) {
	drawSeed(t)
	for _, method := range []string{exactlyOnce, fileLoads, fileLoadsAtEnd, atLeastOnce} {
		t.Run(method, func(t *testing.T) {
			t.Run("job", func(t *testing.T) { newSuite(t, method, "3").job(1) })
			if shortest() && method != exactlyOnce {
				return
			}
			t.Run("job and service", func(t *testing.T) { newSuite(t, method, "3").both(1) })
			t.Run("service", func(t *testing.T) { newSuite(t, method, "3").service() })
			t.Run("job, 2 to 4 to 1 lanes", func(t *testing.T) { newSuite(t, method, "2,4,1").job(2) })
			t.Run("job and service, 2 to 4 to 1 lanes", func(t *testing.T) { newSuite(t, method, "2,4,1").both(2) })
		})
	}
}

// TestKilledTwins starts a second process while the first works, at a service that breaks connections now and then, before an append,
// an upload or the start of a job is done and behind it. Nobody is killed, but whoever is second to store a checkpoint ends: with exactly-once and file loads no
// row is there twice, or lost, even then.
func TestKilledTwins(t *testing.T) {
	drawSeed(t)
	methods := []string{exactlyOnce, fileLoads, fileLoadsAtEnd, atLeastOnce}
	if *instants == 1 {
		methods = methods[:1] // breaking connections takes its time
	}
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			s := newSuite(t, method, "3")
			k := s.test(1)
			k.Prepare = func(t testing.TB, bq *localbq.Instance) {
				t.Helper()
				s.prepare(t, bq)
				breakConnections(t, bq)
			}
			k.RunTwins(t, *instants)
			s.sum(t)
		})
	}
}

func breakConnections(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	for _, method := range []string{"AppendRows", "jobs.insert", "objects.insert"} {
		for _, phase := range []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied} {
			err := bq.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Method: method, Probability: 0.05}, Phase: phase,
				Action: localbq.FaultAction{Reset: true}, Count: localbq.FaultAlways})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// drawSeed says how to run the same again.
func drawSeed(t *testing.T) {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("run again with -seed %d", *seed)
}

// suite is a job and what its rows came to, over all its kills.
type suite struct {
	*testing.T
	method, lanes string

	rows, twice atomic.Int64
	orphans     atomic.Int64 // objects that nobody promised
}

func newSuite(t *testing.T, method, lanes string) *suite {
	return &suite{T: t, method: method, lanes: lanes}
}

// killable is what killtest has.
type killable interface {
	Run(t *testing.T)
	RunAtInstants(t *testing.T, n int)
}

func (s *suite) job(deaths int)  { s.run(s.test(deaths)) }
func (s *suite) both(deaths int) { s.run(s.serverTest(deaths, true)) }
func (s *suite) service()        { s.run(s.serverTest(1, false)) }

func (s *suite) run(k killable) {
	calls, instantly := drawKinds()
	if calls {
		s.Run("calls", k.Run)
	}
	if instantly {
		s.Run("instants", func(t *testing.T) { k.RunAtInstants(t, *instants) })
	}
	s.sum(s.T)
}

// shortest reports whether one death of each job is asked for. Then exactly-once dies in every way, and the others in one.
func shortest() bool { return *points == 1 && *instants == 1 }

var kinds atomic.Uint64

// drawKinds says which kinds of deaths come next: both, unless only one death of each is asked for; then the two take turns, and the
// seed says which begins.
func drawKinds() (calls, instantly bool) {
	if !shortest() {
		return true, true
	}
	turn := (*seed+kinds.Add(1))%2 == 0
	return turn, !turn
}

func (s *suite) sum(t *testing.T) {
	t.Logf("%s, lanes %s: %d rows looked for, all are there; %d of them more than once; %d staged files that nobody had promised are left",
		s.method, s.lanes, s.rows.Load(), s.twice.Load(), s.orphans.Load())
}

func (s *suite) test(deaths int) killtest.Test {
	return killtest.Test{
		Config:  config(),
		Prepare: s.prepare,
		Client: func(_ testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return s.command(dir, killtest.Addresses{REST: bq.REST(), GRPC: bq.GRPC(), Storage: bq.GCS()}, 0)
		},
		Check: s.check, Methods: s.methods(),
		Sample: *points, SampleSeed: *seed, Deaths: deaths,
	}
}

// methods are the calls that file loads are killed at: not those of prepare and check. Nil is all.
func (s *suite) methods() []string {
	calls := []string{"objects.insert", "objects.delete", "datasets.get", "tables.get", "tables.insert", "tables.delete", "jobs.insert", "jobs.get"}
	switch s.method {
	case fileLoads:
		return append(calls, "tables.patch")
	case fileLoadsAtEnd: // its tables are replaced, not widened
		return calls
	}
	return nil
}

func (s *suite) serverTest(deaths int, both bool) killtest.ServerTest {
	return killtest.ServerTest{
		Prepare: s.prepare,
		Server: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
			return as("service", dirKey+"="+dir, restKey+"="+at.REST, grpcKey+"="+at.GRPC, storageKey+"="+at.Storage)
		},
		Client: func(_ testing.TB, dir string, at killtest.Addresses) *exec.Cmd {
			restarts := 50
			if both {
				restarts = 0
			}
			return s.command(dir, at, restarts)
		},
		Check: s.check, Both: both, Methods: s.methods(),
		Sample: *points, SampleSeed: *seed, Deaths: deaths,
	}
}

func (s *suite) command(dir string, at killtest.Addresses, restarts int) *exec.Cmd {
	return as("job", dirKey+"="+dir, restKey+"="+at.REST, grpcKey+"="+at.GRPC, storageKey+"="+at.Storage, methodKey+"="+s.method, lanesKey+"="+s.lanes,
		restartKey+"="+strconv.Itoa(restarts))
}

// prepare makes what file loads expect to find, and a row for them to replace.
func (s *suite) prepare(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	if s.method != fileLoads && s.method != fileLoadsAtEnd {
		return
	}
	c, err := official.NewClient(t.Context(), "p", bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := errors.Join(bq.CreateBucket(stagingBucket), c.Dataset("d").Create(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	if s.method == fileLoads {
		return
	}
	if err := bq.CreateTable("p.d.t0", &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{{Name: "id", Type: "INTEGER"}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Dataset("d").Table("t0").Inserter().Put(t.Context(), &official.ValuesSaver{
		Schema: official.Schema{{Name: "id", Type: official.IntegerFieldType}}, Row: []official.Value{-1}}); err != nil {
		t.Fatal(err)
	}
}

// check compares the tables with the input, and the audit log with the tables.
func (s *suite) check(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	want := map[string][]int64{}
	for _, i := range input.Items() {
		name := "p.d." + tableOf(i.Row)
		want[name] = append(want[name], i.Row)
	}
	for name, rows := range want {
		got := s.visible(t, bq, name)
		for _, row := range rows {
			switch n := got[row]; {
			case n == 0:
				t.Errorf("%s: row %d is lost", name, row)
			case n > 1 && s.method != atLeastOnce:
				t.Errorf("%s: row %d is there %d times", name, row, n)
			case n > 1:
				s.twice.Add(1)
			}
			delete(got, row)
		}
		for row := range got {
			t.Errorf("%s: row %d does not belong there", name, row)
		}
		s.rows.Add(int64(len(rows)))
		s.checkAudit(t, bq, name, len(rows))
	}
	if s.method == fileLoads || s.method == fileLoadsAtEnd {
		s.checkLeftovers(t, bq)
	}
}

// checkLeftovers wants no temporary table, and no object but those that a process had staged which did not live to promise them.
func (s *suite) checkLeftovers(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	c, err := official.NewClient(t.Context(), "p", bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for it := c.Dataset("d").Tables(t.Context()); ; {
		left, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(left.TableID, "millrace_tmp_") {
			t.Errorf("temporary table %s is left", left.TableID)
		}
	}
	loaded, err := loadedObjects(bq)
	if err != nil {
		t.Fatal(err)
	}
	files, err := storage.NewClient(t.Context(), bq.GCSClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for it := files.Bucket(stagingBucket).Objects(t.Context(), nil); ; {
		left, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if loaded[left.Name] {
			t.Errorf("object %s was loaded and is left", left.Name)
		}
		s.orphans.Add(1)
	}
}

// loadedObjects are the objects that load jobs have read.
func loadedObjects(bq *localbq.Instance) (map[string]bool, error) {
	all := map[string]bool{}
	for r, err := range bq.Audit().Records() {
		if err != nil {
			return nil, err
		}
		for _, name := range r.Objects {
			name, _, _ = strings.Cut(name, "#") // the generation
			all[strings.TrimPrefix(name, "gs://"+stagingBucket+"/")] = true
		}
	}
	return all, nil
}

// visible is how often each row is in a table. A row of the second round has its note, and the others have none.
func (s *suite) visible(t testing.TB, bq *localbq.Instance, name string) map[int64]int {
	t.Helper()
	batches, err := bq.Batches(name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]int{}
	for _, b := range batches {
		id := b.Column(0).(*array.Int64)
		for i := range id.Len() {
			row := id.Value(i)
			got[row]++
			want, has := noteOf(row)
			note := ""
			if b.NumCols() > 1 && b.Column(1).IsValid(i) {
				note = b.Column(1).(*array.String).Value(i)
			}
			if note != want || has != (note != "") {
				t.Errorf("%s: row %d has note %q, want %q", name, row, note, want)
			}
		}
	}
	return got
}

// checkAudit has the log account for each visible row: by an append and, with exactly-once, a flush of its stream; by a job with file
// loads.
func (s *suite) checkAudit(t testing.TB, bq *localbq.Instance, name string, rows int) {
	t.Helper()
	if unaccounted, err := bq.Audit().Unaccounted(name); err != nil || len(unaccounted) > 0 {
		t.Errorf("%s: the audit log does not know of rows %v, %v", name, unaccounted, err)
	}
	if s.method == atLeastOnce {
		if lost, err := bq.Audit().AckedNotVisible(name); err != nil || len(lost) > 0 {
			t.Errorf("%s: acknowledged and lost: %v, %v", name, lost, err)
		}
		return
	}
	visible, err := bq.Audit().Visible(name)
	if err != nil || len(visible) != rows {
		t.Errorf("%s: the audit log has %d visible rows, want %d; %v", name, len(visible), rows, err)
	}
	for _, r := range visible {
		if r.Seq == 0 || r.Shown == 0 && s.method == exactlyOnce {
			t.Errorf("%s: the audit log has a visible row without an append or a flush: %+v", name, r)
		}
	}
	if twice, err := bq.Audit().AppliedTwice(name); err != nil || len(twice) > 0 {
		t.Errorf("%s: the audit log has rows visible twice: %v, %v", name, twice, err)
	}
}
