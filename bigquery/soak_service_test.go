package bigquery

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq"
)

// soakFaults fail one call in twenty of each method that writing makes: refused, done and not acknowledged, or lost with its
// connection. Now and then a refusal ends an attempt of a job.
var soakFaults = append([]localbq.Fault{
	soakFault("AppendRows", localbq.PhaseReceive, 0.028, localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE", Message: "soak"}}),
	soakFault("AppendRows", localbq.PhaseApplied, 0.010, localbq.FaultAction{Status: &localbq.FaultStatus{Code: "ABORTED", Message: "soak"}}),
	soakFault("AppendRows", localbq.PhaseReceive, 0.010, localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INTERNAL", Message: "soak", Ends: true}}),
	soakFault("AppendRows", localbq.PhaseApplied, 0.002, localbq.FaultAction{LoseAck: true}),
	soakFault("AppendRows", localbq.PhaseReceive, 0.0001, localbq.FaultAction{Status: &localbq.FaultStatus{Code: "DATA_LOSS", Message: "soak"}}),
	soakHTTPFault("tables.insert"), soakHTTPFault("tables.get"), soakHTTPFault("tables.patch"),
}, soakUnaryFaults("CreateWriteStream", "FlushRows", "GetWriteStream")...)

func soakFault(method string, phase localbq.FaultPhase, p float64, a localbq.FaultAction) localbq.Fault {
	return localbq.Fault{Name: fmt.Sprintf("%s %s %v", method, phase, p), Match: localbq.FaultMatch{Method: method, Probability: p}, Phase: phase, Action: a, Count: localbq.FaultAlways}
}

func soakUnaryFaults(methods ...string) (faults []localbq.Fault) {
	for _, m := range methods {
		for _, phase := range []localbq.FaultPhase{localbq.PhaseReceive, localbq.PhaseApplied} {
			faults = append(faults, soakFault(m, phase, 0.025, localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE", Message: "soak"}}))
		}
	}
	return faults
}

func soakHTTPFault(method string) localbq.Fault {
	return soakFault(method, localbq.PhaseReceive, 0.05, localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError", Message: "soak"}})
}

// soakService is the local service in a process of its own, so that what it keeps does not count as what the writers hold.
// It is asked by lines on its standard input and answers each with one.
type soakService struct {
	testing.TB
	connection Connection
	ask        io.Writer
	answers    *bufio.Reader
}

const soakServiceVariable = "MILLRACE_SOAK_SERVICE"

func startSoakService(t testing.TB) *soakService {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run", "^TestSoakService$")
	child.Env = append(os.Environ(), soakServiceVariable+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // it ends then
		if err := child.Wait(); err != nil {
			t.Errorf("the service: %v", err)
		}
	})
	s := &soakService{TB: t, ask: in, answers: bufio.NewReader(out)}
	where := strings.Fields(s.line())
	s.connection = Connection{RESTEndpoint: where[0], GRPCEndpoint: where[1]}
	return s
}

func (s *soakService) line() string {
	s.Helper()
	line, err := s.answers.ReadString('\n')
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "ok ")
	if err != nil || !ok {
		s.Fatalf("the service says %q, %v", line, err)
	}
	return text
}

func (s *soakService) do(format string, args ...any) string {
	s.Helper()
	if _, err := fmt.Fprintf(s.ask, format+"\n", args...); err != nil {
		s.Fatal(err)
	}
	return s.line()
}

func (s *soakService) number(format string, args ...any) int64 {
	s.Helper()
	n, err := strconv.ParseInt(s.do(format, args...), 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *soakService) fault(faults ...localbq.Fault) {
	s.Helper()
	text, err := json.Marshal(faults)
	if err != nil {
		s.Fatal(err)
	}
	s.do("fault %s", text)
}

// storm uses quotas up for a while, from the next append on.
func (s *soakService) storm(length time.Duration) {
	s.Helper()
	var states []localbq.FaultState
	for _, q := range []string{"appendThroughput", "createStreams", "tableModifications"} {
		states = append(states, localbq.FaultState{Do: localbq.FaultExhaustQuota, Quota: q, For: localbq.FaultDuration(length)})
	}
	s.fault(localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, Action: localbq.FaultAction{State: states}})
}

// rows are the visible rows of a dataset, and drop those of the table that it deletes.
func (s *soakService) rows(dataset string, tables int) int64 {
	s.Helper()
	return s.number("rows %s %d", dataset, tables)
}

func (s *soakService) drop(name string) int64 { s.Helper(); return s.number("drop %s", name) }

// fired tells which faults never struck, as rare ones in a short soak.
func (s *soakService) fired() {
	s.Helper()
	s.Log(s.do("fired"))
}

// TestSoakService is no test: it is the service of TestSoak.
func TestSoakService(t *testing.T) {
	if os.Getenv(soakServiceVariable) == "" {
		return
	}
	bq, err := localbq.Start(context.Background(), localbq.Config{Project: "p", Modes: map[string]localbq.Mode{"*": localbq.ModeValidate},
		Audit: localbq.AuditOptions{CountsOnly: true, MaxBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	fmt.Println("ok", bq.REST(), bq.GRPC())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if answer, err := soakAnswer(bq, lines.Text()); err != nil {
			fmt.Println("failed", err)
		} else {
			fmt.Println("ok", answer)
		}
	}
}

func soakAnswer(bq *localbq.Instance, line string) (any, error) {
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "fault":
		faults, err := localbq.ParseFaults([]byte(rest))
		if err != nil {
			return nil, err
		}
		return len(faults), bq.Faults().Add(faults...)
	case "rows":
		dataset, n, _ := strings.Cut(rest, " ")
		tables, err := strconv.Atoi(n)
		rows, _ := bq.NumRows(dataset + "." + soakHot)
		fallow, _ := bq.NumRows(dataset + "." + soakFallow)
		rows += fallow
		for i := range tables {
			n, _ := bq.NumRows(fmt.Sprintf("%s.t%d", dataset, i)) // 0 for one that never came
			rows += n
		}
		return rows, err
	case "drop":
		return soakDrop(bq, rest)
	case "fired":
		var never []string
		for _, r := range bq.Faults().List() {
			if r.Fired == 0 {
				never = append(never, r.Rule.Name)
			}
		}
		return fmt.Sprintf("faults that never struck: %q", never), nil
	}
	return nil, fmt.Errorf("%q is no command", line)
}

// soakDrop deletes a table while no append to it is under way, so that its rows can be counted.
func soakDrop(bq *localbq.Instance, name string) (int64, error) {
	hold := "hold " + name
	err := bq.Faults().Add(localbq.Fault{Name: hold, Match: localbq.FaultMatch{Method: "AppendRows", Table: name},
		Action: localbq.FaultAction{Hang: true}, Count: localbq.FaultAlways})
	if err != nil {
		return 0, err
	}
	<-time.After(200 * time.Millisecond) // those that passed the rule before are done
	n, err := bq.NumRows(name)
	if err == nil {
		err = bq.DeleteTable(name)
	}
	if r := bq.Faults().Release(hold); err == nil {
		err = r
	}
	return n, err
}

// footprint is what a process holds.
type footprint struct {
	at         time.Duration // into the soak
	heap       int           // bytes that are live
	resident   int           // bytes of memory; 0 where the system does not say
	goroutines int
	sockets    int // 0 where the system does not say
}

func takeFootprint() footprint {
	debug.FreeOSMemory() // collects garbage, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1])
			f.resident = pages * os.Getpagesize()
		}
	}
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		if to, _ := os.Readlink("/proc/self/fd/" + file.Name()); strings.HasPrefix(to, "socket:") {
			f.sockets++
		}
	}
	return f
}

func (f footprint) String() string {
	return fmt.Sprintf("%v: heap %.1f MiB, resident %.1f MiB, %d goroutines, %d connections", f.at.Round(time.Second),
		float64(f.heap)/(1<<20), float64(f.resident)/(1<<20), f.goroutines, f.sockets)
}
