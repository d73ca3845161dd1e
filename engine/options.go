package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// Options say how to run a job. The zero value is ready to use: as many lanes as processors, one checkpoint at the end,
// held in memory.
type Options struct {
	// Lanes is how many readers and writers work side by side, at most MaxLanes. The default is runtime.GOMAXPROCS(0). It
	// may differ from what it was when a checkpoint was taken.
	Lanes int

	Checkpoint Checkpointing
	Restart    Restart

	// From says where to start. The default, Auto, goes on with an unfinished run.
	From From

	// StopTimeout bounds a graceful stop, final checkpoint included; after it the run is aborted with ErrStopTimeout.
	// The default is one minute.
	StopTimeout time.Duration
	// StopWithoutCheckpoint makes a graceful stop take no final checkpoint: the next run goes on from the last one.
	StopWithoutCheckpoint bool

	// Handle, when set, lets other goroutines watch, stop and savepoint the run.
	Handle *Handle

	// Progress, when set, is called every ProgressEvery, from a goroutine of the run's own that ends before Run returns.
	// The default interval is 10 s.
	Progress      func(Status)
	ProgressEvery time.Duration

	// Meter and Log are handed to every part of the job. Both are silent by default.
	Meter stream.Meter
	Log   *slog.Logger
}

// MaxLanes is the most lanes a job can have: far more than a machine has use for, and few enough that asking for them does
// not by itself use its memory up.
const MaxLanes = 10_000

// Checkpointing says when checkpoints are taken and where they are kept.
type Checkpointing struct {
	// Every is the time from the start of one checkpoint to the start of the next, as long as checkpoints are quicker
	// than that. 0 takes one at the end only, which a job that never ends and commits in two phases refuses: its rows
	// would never be seen.
	Every time.Duration

	// URL names a store for OpenStore; Store is one that is open already, and stays open. With neither, checkpoints are
	// held in memory: the run survives its own failures, but not the end of the process.
	URL   string
	Store Store

	// Keep is how many checkpoints stay in the store; savepoints stay for ever and do not count. The default is 3.
	Keep int

	// Tolerate is how many checkpoints in a row may fail to be stored before the attempt fails; what they would have
	// committed is stored with the next. The default is 3; NoTolerance ends the attempt at the first.
	Tolerate int
}

// NoTolerance, as Checkpointing.Tolerate, ends an attempt at the first checkpoint that could not be stored.
const NoTolerance = -1

// From says where a run starts: one of the constants, or the id of a checkpoint.
type From int64

const (
	// Auto goes on from the newest checkpoint of an unfinished run, and starts anew after a finished one.
	Auto From = 0
	// Latest goes on from the newest checkpoint, if there is one, and does nothing when its run had finished.
	Latest From = -1
	// None starts anew, whatever the store holds.
	None From = -2
)

// ParseFrom reads what a person types: "", "latest", "none" or the id of a checkpoint.
func ParseFrom(s string) (From, error) {
	switch s {
	case "", "auto":
		return Auto, nil
	case "latest":
		return Latest, nil
	case "none":
		return None, nil
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 {
		return 0, fmt.Errorf("%q is no place to start from: want latest, none, or the id of a checkpoint such as 12", s)
	}
	return From(id), nil
}

func (f From) String() string {
	switch f {
	case Auto:
		return "auto"
	case Latest:
		return "latest"
	case None:
		return "none"
	}
	return strconv.FormatInt(int64(f), 10)
}

const (
	defaultKeep          = 3
	defaultTolerate      = 3
	defaultStopTimeout   = time.Minute
	defaultProgressEvery = 10 * time.Second
)

// resolve checks everything and fills in the defaults.
func (o Options) resolve() (Options, error) {
	faults := o.faults()
	o.Lanes = orDefault(o.Lanes, runtime.GOMAXPROCS(0))
	o.Checkpoint.Keep = orDefault(o.Checkpoint.Keep, defaultKeep)
	o.Checkpoint.Tolerate = max(0, orDefault(o.Checkpoint.Tolerate, defaultTolerate))
	o.StopTimeout = orDefault(o.StopTimeout, defaultStopTimeout)
	o.ProgressEvery = orDefault(o.ProgressEvery, defaultProgressEvery)
	var err error
	if o.Restart, err = o.Restart.resolve(); err != nil {
		faults = append(faults, err)
	}
	if o.Handle == nil {
		o.Handle = new(Handle)
	}
	if o.Meter == nil {
		o.Meter = stream.NoMeter
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, errors.Join(faults...)
}

func (o Options) faults() (faults []error) {
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("Options."+format, args...))
		}
	}
	c := o.Checkpoint
	refuse(o.Lanes < 0 || o.Lanes > MaxLanes, "Lanes is %d: want 1 to %d, or 0 for one per processor", o.Lanes, MaxLanes)
	refuse(c.Every < 0, "Checkpoint.Every is %v: want a positive time, or 0 for the end only", c.Every)
	refuse(c.Keep < 0, "Checkpoint.Keep is %d: want 1 or more, or 0 for %d", c.Keep, defaultKeep)
	refuse(c.Tolerate < NoTolerance, "Checkpoint.Tolerate is %d: want 1 or more, 0 for %d, or NoTolerance", c.Tolerate, defaultTolerate)
	refuse(c.URL != "" && c.Store != nil, "Checkpoint.URL is %q while Checkpoint.Store is set: set one", c.URL)
	refuse(o.From < None, "From is %d: want Auto, Latest, None or the id of a checkpoint", int64(o.From))
	refuse(o.From > 0 && c.URL == "" && c.Store == nil, "From is checkpoint %d, but neither Checkpoint.URL nor Checkpoint.Store says where it is", int64(o.From))
	refuse(o.StopTimeout < 0, "StopTimeout is %v: want a positive time, or 0 for %v", o.StopTimeout, defaultStopTimeout)
	refuse(o.ProgressEvery < 0, "ProgressEvery is %v: want a positive time, or 0 for %v", o.ProgressEvery, defaultProgressEvery)
	return faults
}

func orDefault[T comparable](v, otherwise T) T {
	if v == *new(T) {
		return otherwise
	}
	return v
}
