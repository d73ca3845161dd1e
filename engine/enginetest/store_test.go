package enginetest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	TestStore(t, StoreHarness{New: func(*testing.T) (engine.Store, func(*testing.T) engine.Store) { return &Memory{}, nil }})
}
