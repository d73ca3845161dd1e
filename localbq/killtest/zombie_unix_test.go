//go:build unix

package killtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/killtest"
)

// A client that goes on with what another one kept, while that one still writes what it was about to, writes each row once.
func TestZombiesOfExactClient(t *testing.T) {
	killtest.Test{
		Config:  localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: makeTable,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return command("exact", endpoint+"="+bq.GRPC(), state+"="+dir)
		},
		Check: onceEach, Sample: 9, SampleSeed: 1,
	}.RunZombies(t)
}

// Two processes that write the same rows to the default stream are found out where the first stood before an append.
func TestZombies(t *testing.T) {
	if os.Getenv(manner) == "" {
		out := failing(t, "TestZombies", careful)
		for phase, verdict := range map[string]string{"receive": "FAIL", "answered": "FAIL"} {
			if want := "--- " + verdict + ": TestZombies/at/AppendRows:1:" + phase + " "; !strings.Contains(out, want) {
				t.Errorf("expected %q in\n%s", want, out)
			}
		}
		return
	}
	killtest.Test{
		Config:  localbq.Config{Project: "p", AutoCreateDataset: true, Seed: 1},
		Prepare: makeTable,
		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
			return command("client", endpoint+"="+bq.GRPC(), state+"="+dir, manner+"="+careful)
		},
		Check: onceEach, Methods: []string{"AppendRows"},
	}.RunZombies(t)
}
