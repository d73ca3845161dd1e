package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

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
	// Wrote, if not nil, is told of every write of rows that nobody else accounts for, as by Rows.Account.
	Wrote func(*Table, Written)
	// Mode, if not nil, is the mode that a new table starts in.
	Mode func(TableRef) Mode

	// TombstoneRetention is how long change data capture remembers deleted keys; 0 is DefaultTombstoneRetention.
	TombstoneRetention time.Duration

	// Dir is a folder that everything is kept in as well; "" keeps it in memory only. One store at a time can have a folder.
	Dir string
	// Sync says what of it survives the end of the machine; what is acknowledged survives the end of the process anyway.
	Sync Sync
	// CheckpointBytes is how long the log grows before its contents are written to data files; 0 is 64 MiB.
	CheckpointBytes int64
	// Locked, if not nil, is called once the folder is this store's alone, before anything is read from it.
	Locked func() error
	// Recovered, if not nil, is told of every write of rows that is read back from the log, in order, with its note.
	Recovered func(note []byte, t *Table, w Written) error
	// Trimming, if not nil, is called before the log forgets notes.
	Trimming func() error
	// Logger hears of checkpoints that fail; nil is silence.
	Logger *slog.Logger
}

// Store is the whole of it. Safe for concurrent use.
type Store struct {
	options Options
	clock   clock.Clock

	queueing sync.Mutex // guards queue
	queue    []*ticket

	committing sync.Mutex // held by the writer that commits; guards assigned, broken and what log says it guards
	assigned   int64      // the last version given out
	broken     error      // why the store takes no more changes
	log        *wal       // nil in memory
	frames     []byte     // of the commit at hand

	version atomic.Int64 // the last version published

	catalog  sync.RWMutex // guards jobs, datasets and everything in it but the tables' insides
	datasets map[DatasetRef]*datasetEntry
	jobs     map[string]Job

	// What follows is for stores with a folder.
	lock     *os.File
	manifest manifest // used by whoever makes a checkpoint
	recovery Recovery
	full     chan struct{} // the log has grown enough for a checkpoint
	stop     chan struct{} // closed by Close
	tending  sync.WaitGroup
}

type datasetEntry struct {
	dataset *Dataset
	tables  map[string]*Table
}

// Open makes a store, and reads back what its folder holds.
func Open(o Options) (*Store, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TombstoneRetention == 0 {
		o.TombstoneRetention = DefaultTombstoneRetention
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = 64 << 20
	}
	s := &Store{options: o, clock: o.Clock, datasets: map[DatasetRef]*datasetEntry{}, jobs: map[string]Job{}}
	if o.Dir == "" {
		return s, nil
	}
	if err := s.openFolder(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

func (s *Store) openFolder() error {
	var err error
	if s.lock, err = lockFolder(s.options.Dir); err != nil {
		return err
	}
	if s.options.Locked != nil {
		err = s.options.Locked()
	}
	if err == nil {
		err = s.recover()
	}
	if err != nil {
		return errors.Join(err, s.lock.Close())
	}
	s.full, s.stop = make(chan struct{}, 1), make(chan struct{})
	s.tending.Go(s.tend)
	return nil
}

// Recovery says what the store found in its folder when it was opened.
func (s *Store) Recovery() Recovery { return s.recovery }

// Close writes a checkpoint, so that the next Open is quick, and gives the folder free. Nothing may be called afterwards.
func (s *Store) Close() error {
	if s.log == nil {
		return nil
	}
	close(s.stop)
	s.tending.Wait()
	err := s.checkpoint()
	return errors.Join(err, s.log.close(), s.lock.Close())
}

// Version is the last version published: everything committed up to it is visible, nothing above it is.
func (s *Store) Version() int64 { return s.version.Load() }

func (s *Store) checkDefinition(d *schema.Definition) error {
	if err := d.Check(); err != nil || s.options.Check == nil {
		return err
	}
	return s.options.Check(d)
}
