package killtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// Test is a client and how its work is judged. Client and Check are required.
type Test struct {
	// Config is of the service that each client has to itself. Without a Seed a service picks its own.
	Config localbq.Config
	// Prepare makes what the client expects to find.
	Prepare func(t testing.TB, bq *localbq.Instance)
	// Client is the process. It may keep what it likes in dir, and finds it there when it is started again.
	Client func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd
	// Check judges what the service holds once the client has ended well. Fails the point's test through t.
	Check func(t testing.TB, bq *localbq.Instance)

	// Methods are the calls to kill at, as the audit log names them: AppendRows, tables.insert. Nil is all.
	Methods []string
	// Answers are how many answers all calls of a method have together, where each of them has several, as ReadRows does: with those,
	// rather than with calls, the phases in which something is done go on.
	Answers map[string]int
	// Sample is how many points are tried, drawn with SampleSeed from all; 0 tries every one.
	Sample     int
	SampleSeed uint64

	// Deaths is how often a client is killed before one is left in peace; 0 is once. After the first, deaths are at calls drawn
	// with SampleSeed, whatever their method, most of them early: what comes first after a start is what goes on with the work
	// of the one before.
	Deaths int
}

// Run goes through all points. A client that does things in another order each time may end without having come to a
// point: its work is judged all the same, and Run fails when the first call of a method was not reached.
func (k Test) Run(t *testing.T) {
	t.Helper()
	k.script().run(t)
}

// RunAtInstants kills clients n times, each at an instant: a time after a call, both drawn with SampleSeed.
func (k Test) RunAtInstants(t *testing.T, n int) {
	t.Helper()
	k.script().runAtInstants(t, n)
}

// RunTwins has n clients, each of which gets another one beside it at an instant, by the same command. Both may end as they like:
// one that has the state of the other change under it may give up. What is left to do, a third one does.
func (k Test) RunTwins(t *testing.T, n int) {
	t.Helper()
	k.Deaths = 1
	s := k.script()
	s.playAll(t, s.instantPlays(t, n), func(t *testing.T, p play) { s.twins(t, k.stage(t), p.deaths[0]) })
}

func (s *script) twins(t *testing.T, w *within, d death) {
	first := s.launch(w, d)
	if _, ok := s.reach(w, first, d); !ok {
		s.sum.missed.Add(1)
	}
	second := s.start(w)
	<-first.running.Done()
	<-second.running.Done()
	s.end(t, w, nil, false)
	if t.Failed() {
		t.Logf("the first two processes ended so: %v\n%s\n%v\n%s", first.err, first.said.String(), second.err, second.said.String())
	}
}

func (k Test) script() *script {
	return &script{
		methods: k.Methods, answers: k.Answers, sample: k.Sample, seed: k.SampleSeed, deaths: max(1, k.Deaths),
		set: func(t testing.TB) stage { return k.stage(t) },
	}
}

// within is a service in this process and what belongs to it: of its clients, that dies which is there.
type within struct {
	*Test
	t   testing.TB
	bq  *localbq.Instance
	dir string
}

func (k Test) stage(t testing.TB) *within {
	t.Helper()
	return &within{Test: &k, t: t, bq: k.start(t), dir: t.TempDir()}
}

func (k Test) start(t testing.TB) *localbq.Instance {
	t.Helper()
	bq, err := localbq.Start(context.WithoutCancel(t.Context()), k.Config)
	if err != nil {
		t.Fatal(err)
	}
	open := bq
	t.Cleanup(func() { // the function stays with t, and t with its parent, until all plays are over: the service must not
		if err := open.Close(); err != nil {
			t.Error(err)
		}
		open = nil
	})
	if k.Prepare != nil {
		k.Prepare(t, bq)
	}
	return bq
}

func (w *within) launch() *process {
	w.t.Helper()
	return launch(w.t, w.Client(w.t, w.bq, w.dir))
}

func (w *within) arm(d death) {
	w.t.Helper()
	if err := w.bq.Faults().Add(d.rules()...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *within) await(c *process) held {
	b, err := w.bq.Faults().NextBarrier(c.running)
	if err != nil { // it ended
		return nil
	}
	return b
}

// kill kills the client. The call at which it dies is cut off with it.
func (w *within) kill(c *process, at held) {
	w.t.Helper()
	c.kill(w.t)
	if at != nil {
		at.Cut()
	}
}

func (w *within) over() *localbq.Instance { return w.bq }

func (w *within) check(bq *localbq.Instance) {
	w.t.Helper()
	w.Check(w.t, bq)
}

// forgives: the service was there all the time.
func (w *within) forgives() bool { return false }

// process is one that was started. running ends when it does.
type process struct {
	cmd     *exec.Cmd
	running context.Context
	said    bytes.Buffer
	err     error
}

func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	c := &process{cmd: cmd}
	if c.cmd.Stdout == nil {
		c.cmd.Stdout = &c.said
	}
	if c.cmd.Stderr == nil {
		c.cmd.Stderr = &c.said
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ended context.CancelFunc
	c.running, ended = context.WithCancel(context.Background())
	go func() { // ends with the process, which the cleanup sees to
		c.err = c.cmd.Wait()
		ended()
	}()
	t.Cleanup(func() {
		if err := c.cmd.Process.Kill(); err == nil {
			<-c.running.Done()
		}
	})
	return c
}

// kill kills the process, unless it has ended, and waits for its end.
func (c *process) kill(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-c.running.Done()
}

// livesFor waits so long, and reports whether the process is still there.
func (c *process) livesFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.running.Done():
		return false
	}
}

// killed reports whether the process has been ended by a signal.
func (c *process) killed() bool {
	if c.running.Err() == nil {
		return false
	}
	exit, ok := errors.AsType[*exec.ExitError](c.err)
	return ok && !exit.Exited()
}

func (c *process) mustSucceed(t testing.TB) {
	t.Helper()
	if c.err == nil {
		return
	}
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		t.Fatalf("the process failed: %v\n%s", c.err, c.said.String())
	}
	t.Fatal(c.err)
}
