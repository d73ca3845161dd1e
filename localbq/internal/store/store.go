package store

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Options say where and how a store keeps what it holds. The zero value is a store in memory on the machine's clock.
type Options struct {
	Clock clock.Clock
	// AutoCreateDataset makes a dataset of location US the first time a table is created in it.
	AutoCreateDataset bool
	// Check, if not nil, is asked before a definition is accepted, after the definition's own rules.
	Check func(*schema.Definition) error
	// Wrote, if not nil, is told of every write of rows that nobody else accounts for, once it is visible.
	Wrote func(*Table, Written)
	// Mode, if not nil, is the mode that a new table starts in.
	Mode func(TableRef) Mode
}

// Store is the whole of it. Safe for concurrent use.
type Store struct {
	options Options
	clock   clock.Clock

	queueing sync.Mutex // guards queue
	queue    []*ticket

	committing sync.Mutex // held by the writer that commits; guards assigned and broken
	assigned   int64      // the last version given out
	broken     error      // why the store takes no more changes

	version atomic.Int64 // the last version published

	catalog  sync.RWMutex // guards datasets and everything in it but the tables' insides
	datasets map[DatasetRef]*datasetEntry
}

type datasetEntry struct {
	dataset *Dataset
	tables  map[string]*Table
}

// Open makes a store.
func Open(o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Store{options: o, clock: o.Clock, datasets: map[DatasetRef]*datasetEntry{}}, nil
}

// Close gives back what the store holds of the system. Nothing may be called afterwards.
func (s *Store) Close() error { return nil }

// Version is the last version published: everything committed up to it is visible, nothing above it is.
func (s *Store) Version() int64 { return s.version.Load() }

func (s *Store) checkDefinition(d *schema.Definition) error {
	if err := d.Check(); err != nil || s.options.Check == nil {
		return err
	}
	return s.options.Check(d)
}
