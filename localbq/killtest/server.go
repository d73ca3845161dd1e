package killtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// ServerTest kills the service, at every step of every call, and starts it again over the folder it kept its data in. The
// client lives on, and is started again only if it does not get over the loss; or it is killed too. Server, Client and Check
// are required.
type ServerTest struct {
	// Prepare makes what the client expects to find. The service that it is given is closed before Server starts.
	Prepare func(t testing.TB, bq *localbq.Instance)
	// Server is the process that serves folder dir at the addresses until it is interrupted or killed.
	Server func(t testing.TB, dir string, at Addresses) *exec.Cmd
	// Client is the process that uses it. It may keep what it likes in dir, and finds it there when it is started again.
	Client func(t testing.TB, dir string, at Addresses) *exec.Cmd
	// Check judges what the folder holds once the client has ended well. Fails the point's test through t.
	Check func(t testing.TB, bq *localbq.Instance)

	// Both has the client killed with the service.
	Both bool

	// Methods, Sample, SampleSeed and Deaths are as in Test.
	Methods    []string
	Sample     int
	SampleSeed uint64
	Deaths     int
}

// Addresses are where a service is, and is again after each start: host:port of each of its interfaces.
type Addresses struct{ REST, GRPC, Storage string }

// Run goes through all points, as Test.Run does.
func (k ServerTest) Run(t *testing.T) {
	t.Helper()
	k.script().run(t)
}

// RunAtInstants kills n times, as Test.RunAtInstants does.
func (k ServerTest) RunAtInstants(t *testing.T, n int) {
	t.Helper()
	k.script().runAtInstants(t, n)
}

func (k ServerTest) script() *script {
	return &script{
		methods: k.Methods, sample: k.Sample, seed: k.SampleSeed, deaths: max(1, k.Deaths),
		set: func(t testing.TB) stage { return k.site(t) },
	}
}

// site is a service in a process and what belongs to it.
type site struct {
	*ServerTest
	t           testing.TB
	data, state string // folders of the service and of the client
	at          Addresses
	server      *process
}

func (k ServerTest) site(t testing.TB) *site {
	t.Helper()
	s := &site{ServerTest: &k, t: t, data: t.TempDir(), state: t.TempDir(), at: Addresses{freeAddress(t), freeAddress(t), freeAddress(t)}}
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

// freeAddress is one that nobody listens at. A service that is started again has to have it again, so it is none of those that
// systems give to clients, and none that this process has used before.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range portCount {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+(portOffset+nextPort.Add(1))%portCount)
		l, err := net.Listen("tcp", address)
		if err == nil {
			l.Close()
			return address
		}
	}
	t.Fatalf("every port from %d to %d is taken", firstPort, firstPort+portCount-1)
	return ""
}

// Linux gives clients ports from 32768 on, other systems from 49152.
const firstPort, portCount = 10_000, 22_000

var (
	nextPort   atomic.Uint32
	portOffset = rand.Uint32N(portCount)
)

// serve starts the service and waits until it answers.
func (s *site) serve() {
	s.t.Helper()
	s.server = launch(s.t, s.Server(s.t, s.data, s.at))
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
	q, err := http.NewRequestWithContext(s.server.running, method, "http://"+s.at.REST+"/local/v1/"+what, bytes.NewReader(text))
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

// over ends the service in an orderly way and opens what it left.
func (s *site) over() *localbq.Instance {
	s.t.Helper()
	if err := s.server.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	<-s.server.running.Done()
	bq, err := localbq.Start(context.WithoutCancel(s.t.Context()), localbq.Config{Dir: s.data})
	if err != nil {
		s.t.Fatal(err)
	}
	open := bq
	s.t.Cleanup(func() { // as in start
		if err := open.Close(); err != nil {
			s.t.Error(err)
		}
		open = nil
	})
	return bq
}

func (s *site) launch() *process {
	s.t.Helper()
	return launch(s.t, s.Client(s.t, s.state, s.at))
}

func (s *site) arm(d death) {
	s.t.Helper()
	for _, rule := range d.rules() {
		if _, err := s.ask(http.MethodPost, "faults", rule); err != nil {
			s.t.Fatal(err)
		}
	}
}

// await polls until a call is held, or the client has ended without.
func (s *site) await(c *process) held {
	s.t.Helper()
	for c.running.Err() == nil {
		answer, err := s.ask(http.MethodGet, "barriers/next?timeout="+poll.String(), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		if answer == nil {
			continue
		}
		call := &heldAt{site: s}
		if err := json.Unmarshal(answer, call); err != nil {
			s.t.Fatal(err)
		}
		return call
	}
	return nil
}

// poll is how long the service is asked to wait for a call at the barrier: how late the end of a client that never comes to it
// is noticed.
const poll = 200 * time.Millisecond

// heldAt is a call that the service in the process holds.
type heldAt struct {
	site *site
	ID   int64 `json:"id"`
}

func (h *heldAt) Release() { h.tell("release") }
func (h *heldAt) Cut()     { h.tell("cut") }

func (h *heldAt) tell(what string) {
	h.site.t.Helper()
	if _, err := h.site.ask(http.MethodPost, fmt.Sprintf("barriers/%d/%s", h.ID, what), nil); err != nil {
		h.site.t.Fatal(err)
	}
}

// kill kills the service, and the client before it, and starts the service again.
func (s *site) kill(c *process, _ held) {
	s.t.Helper()
	if s.Both {
		c.kill(s.t)
	}
	s.server.kill(s.t)
	s.serve()
}

// forgives: a client whose service is gone for a while may give up.
func (s *site) forgives() bool { return !s.Both }

func (s *site) check(bq *localbq.Instance) {
	s.t.Helper()
	s.Check(s.t, bq)
}
