package killtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// ServerTest kills the service instead, at every step of every call, and starts it again over the folder it kept its data in.
// The client lives on, and is started again only if it does not get over the loss. Server, Client and Check are required.
type ServerTest struct {
	// Prepare makes what the client expects to find. The service that it is given is closed before Server starts.
	Prepare func(t testing.TB, bq *localbq.Instance)
	// Server is the process that serves folder dir at the two addresses until it is interrupted or killed.
	Server func(t testing.TB, dir, rest, grpc string) *exec.Cmd
	// Client is the process that uses it. It may keep what it likes in dir, and finds it there when it is started again.
	Client func(t testing.TB, dir, rest, grpc string) *exec.Cmd
	// Check judges what the folder holds once the client has ended well. Fails the point's test through t.
	Check func(t testing.TB, bq *localbq.Instance)

	// Methods, Sample and SampleSeed are as in Test.
	Methods    []string
	Sample     int
	SampleSeed uint64
}

// Run goes through all points, as Test.Run does.
func (k ServerTest) Run(t *testing.T) {
	t.Helper()
	run(t, k.points(t), k.kill)
}

// site is a service in a process and what belongs to it.
type site struct {
	*ServerTest
	t           testing.TB
	data, state string // folders of the service and of the client
	rest, grpc  string // addresses
	server      *process
}

func (k ServerTest) site(t testing.TB) *site {
	t.Helper()
	s := &site{ServerTest: &k, t: t, data: t.TempDir(), state: t.TempDir(), rest: freeAddress(t), grpc: freeAddress(t)}
	if k.Prepare != nil {
		s.prepare()
	}
	s.serve()
	return s
}

func (s *site) prepare() {
	s.t.Helper()
	bq, err := localbq.Start(context.WithoutCancel(s.t.Context()), localbq.Config{Dir: s.data, AutoCreateDataset: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Prepare(s.t, bq)
	if err := bq.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// freeAddress is one that nobody listens at; a service that is started again has to have it again.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve starts the service and waits until it answers.
func (s *site) serve() {
	s.t.Helper()
	s.server = launch(s.t, s.Server(s.t, s.data, s.rest, s.grpc))
	for s.server.running.Err() == nil {
		if _, err := s.ask(http.MethodGet, "clock", nil); err == nil {
			return
		}
		select {
		case <-s.server.running.Done():
		case <-time.After(time.Millisecond):
		}
	}
	s.t.Fatalf("the service ended: %v\n%s", s.server.err, s.server.said.String())
}

// ask calls the service's admin API; nil is 204.
func (s *site) ask(method, what string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(s.server.running, method, "http://"+s.rest+"/local/v1/"+what, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNoContent:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s %s: %s: %s", method, what, resp.Status, answer)
	}
	return answer, nil
}

// stop ends the service in an orderly way and opens what it left.
func (s *site) stop() *localbq.Instance {
	s.t.Helper()
	if err := s.server.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	<-s.server.running.Done()
	bq, err := localbq.Start(context.WithoutCancel(s.t.Context()), localbq.Config{Dir: s.data})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return bq
}

func (s *site) client() *process {
	s.t.Helper()
	return launch(s.t, s.Client(s.t, s.state, s.rest, s.grpc))
}

func (k ServerTest) points(t *testing.T) []Point {
	t.Helper()
	s := k.site(t)
	c := s.client()
	<-c.running.Done()
	c.mustSucceed(t)
	bq := s.stop()
	k.Check(t, bq)
	if t.Failed() {
		t.FailNow()
	}
	return sample(pointsIn(t, bq, k.Methods), k.Sample, k.SampleSeed)
}

// kill reports whether the client came to the point, where the service was killed.
func (k ServerTest) kill(t *testing.T, p Point) bool {
	t.Helper()
	s := k.site(t)
	if _, err := s.ask(http.MethodPost, "faults", p.barrier()); err != nil {
		t.Fatal(err)
	}
	c := s.client()
	reached := s.awaitBarrier(c)
	if reached {
		if err := s.server.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.server.running.Done()
		s.serve()
	}
	<-c.running.Done()
	if reached && c.err != nil {
		c = s.client()
		<-c.running.Done()
	}
	c.mustSucceed(t)
	k.Check(t, s.stop())
	return reached
}

// awaitBarrier polls until a call is held, or the client has ended without.
func (s *site) awaitBarrier(c *process) bool {
	s.t.Helper()
	for c.running.Err() == nil {
		held, err := s.ask(http.MethodGet, "barriers/next?timeout="+poll.String(), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if held != nil {
			return true
		}
	}
	return false
}

// poll is how long the service is asked to wait for a call at the barrier: how late the end of a client that never comes to it
// is noticed.
const poll = 200 * time.Millisecond

// barrier is the rule that holds the point's call.
func (p Point) barrier() localbq.Fault {
	return localbq.Fault{
		Name:   "kill",
		Match:  localbq.FaultMatch{Method: p.Method, Nth: p.Nth},
		Phase:  localbq.FaultPhase(p.Phase),
		Action: localbq.FaultAction{Barrier: true},
	}
}

var phases = []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied, localbq.PhaseAnswered}

// pointsIn makes points of the calls that the audit log knows.
func pointsIn(t testing.TB, bq *localbq.Instance, methods []string) (out []Point) {
	t.Helper()
	calls := map[string]int{}
	for r, err := range bq.Audit().Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Conn == "" || methods != nil && !slices.Contains(methods, r.RPC) {
			continue
		}
		calls[r.RPC]++
		for _, phase := range phases {
			out = append(out, Point{r.RPC, calls[r.RPC], string(phase)})
		}
	}
	for _, m := range methods {
		if calls[m] == 0 {
			t.Fatalf("the client made no call of %s", m)
		}
	}
	if len(out) == 0 {
		t.Fatal("the client made no calls")
	}
	return out
}
