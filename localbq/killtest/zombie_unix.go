//go:build unix

package killtest

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// RunZombies goes through all points, too, but the client at one is only stopped, as by a machine that hangs. Another one is
// started by the same command and has to end well; then the first goes on with the call at which it stood, knowing of nothing.
// It may end as it likes.
func (k Test) RunZombies(t *testing.T) {
	t.Helper()
	k.Deaths = 1
	s := k.script()
	s.playAll(t, s.pointPlays(t), func(t *testing.T, p play) { s.zombie(t, k.stage(t), p.deaths[0]) })
}

// RunZombiesAtInstants stops n clients in the same way, each at an instant.
func (k Test) RunZombiesAtInstants(t *testing.T, n int) {
	t.Helper()
	k.Deaths = 1
	s := k.script()
	s.playAll(t, s.instantPlays(t, n), func(t *testing.T, p play) { s.zombie(t, k.stage(t), p.deaths[0]) })
}

func (s *script) zombie(t *testing.T, w *within, d death) {
	first := s.launch(w, d)
	at, ok := s.reach(w, first, d)
	if !ok {
		s.sum.missed.Add(1)
		s.end(t, w, first, false)
		return
	}
	first.signal(t, syscall.SIGSTOP)
	s.sum.kills.Add(1)
	second := s.start(w)
	<-second.running.Done()
	if at != nil {
		at.Release()
	}
	first.signal(t, syscall.SIGCONT)
	<-first.running.Done()
	if second.err != nil {
		t.Logf("the first process ended so: %v\n%s", first.err, first.said.String())
	}
	second.mustSucceed(t)
	w.check(w.over())
}

// signal reaches a process that has not ended.
func (c *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}
