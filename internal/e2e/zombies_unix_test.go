//go:build unix

package e2e

import "testing"

// TestKilledZombies stops the job rather than killing it, wherever TestKilled kills it, has another process do the job, and lets
// the first go on: what it still does shows no row twice with exactly-once and file loads.
func TestKilledZombies(t *testing.T) {
	drawSeed(t)
	for _, method := range []string{exactlyOnce, fileLoads, fileLoadsAtEnd, atLeastOnce} {
		t.Run(method, func(t *testing.T) {
			s := newSuite(t, method, "3")
			calls, instantly := drawKinds()
			if calls {
				t.Run("calls", s.test(1).RunZombies)
			}
			if instantly {
				t.Run("instants", func(t *testing.T) { s.test(1).RunZombiesAtInstants(t, *instants) })
			}
			s.sum(t)
		})
	}
}
