package killtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync/atomic"
	"testing"

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
	// Sample is how many points are tried, drawn with SampleSeed from all; 0 tries every one.
	Sample     int
	SampleSeed uint64
}

// Point is a place to kill at: the nth call of a method, counted from 1, in one of its phases.
type Point struct {
	Method string
	Nth    int
	Phase  string
}

func (p Point) String() string { return fmt.Sprintf("%s:%d:%s", p.Method, p.Nth, p.Phase) }

// Run goes through all points. A client that does things in another order each time may end without having come to a
// point: its work is judged all the same, and Run fails when the first call of a method was not reached.
func (k Test) Run(t *testing.T) {
	t.Helper()
	run(t, k.points(t), k.kill)
}

// run has each point killed in a subtest. kill reports whether it was reached.
func run(t *testing.T, points []Point, kill func(*testing.T, Point) bool) {
	t.Helper()
	var reached, missed atomic.Int64
	t.Run("at", func(t *testing.T) { // ends when its parallel subtests have
		for _, p := range points {
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				switch {
				case kill(t, p):
					reached.Add(1)
				case p.Nth == 1:
					t.Errorf("the client ended without a first call of %s", p.Method)
				default:
					missed.Add(1)
				}
			})
		}
	})
	t.Logf("killed at %d points; the client did not come to %d others", reached.Load(), missed.Load())
}

// points runs the client undisturbed and makes points of its calls.
func (k Test) points(t *testing.T) []Point {
	t.Helper()
	bq := k.start(t)
	k.finish(t, bq, t.TempDir())
	k.Check(t, bq)
	if t.Failed() {
		t.FailNow()
	}
	return sample(pointsIn(t, bq, k.Methods), k.Sample, k.SampleSeed)
}

// sample draws n points; 0 is all.
func sample(points []Point, n int, seed uint64) []Point {
	if n <= 0 || n >= len(points) {
		return points
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	return points[:n]
}

func (k Test) start(t testing.TB) *localbq.Instance {
	t.Helper()
	bq, err := localbq.Start(context.WithoutCancel(t.Context()), k.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			t.Error(err)
		}
	})
	if k.Prepare != nil {
		k.Prepare(t, bq)
	}
	return bq
}

// kill reports whether the client came to the point, where it was killed.
func (k Test) kill(t *testing.T, p Point) bool {
	t.Helper()
	bq := k.start(t)
	if err := bq.Faults().Add(p.barrier()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	reached := k.killAtBarrier(t, bq, dir)
	if reached {
		k.finish(t, bq, dir)
	}
	k.Check(t, bq)
	return reached
}

// killAtBarrier runs the client until the service holds one of its calls, or it ends.
func (k Test) killAtBarrier(t *testing.T, bq *localbq.Instance, dir string) bool {
	t.Helper()
	c := launch(t, k.Client(t, bq, dir))
	held, err := bq.Faults().NextBarrier(c.running)
	if err != nil { // it ended
		c.mustSucceed(t)
		return false
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.running.Done()
	held.Cut()
	return true
}

// finish runs the client to its end.
func (k Test) finish(t testing.TB, bq *localbq.Instance, dir string) {
	t.Helper()
	c := launch(t, k.Client(t, bq, dir))
	<-c.running.Done()
	c.mustSucceed(t)
}

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
