package engine

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/stream"
)

// askedBy is called when a lane wants a split.
func (a *attempt) askedBy(lane int) error {
	a.hold(lane, false)
	a.parking.ask(lane)
	return a.serve()
}

func (a *attempt) hold(lane int, split bool) {
	a.holding[lane] = split
	busy := int64(0)
	for _, h := range a.holding {
		if h {
			busy++
		}
	}
	a.run.ins.lanesBusy.Set(busy)
}

// serve hands out splits to the lanes that ask, in the order they came. While a barrier is under way none is handed out:
// it would be neither in the report of a lane that has reported nor in the enumerator's snapshot.
func (a *attempt) serve() error {
	for len(a.parking.asking) > 0 && a.aligning == nil && a.final == nil {
		lane := a.parking.asking[0]
		split, err := a.next(lane)
		switch {
		case err == nil:
			a.parking.take()
			a.hold(lane, true)
			a.run.ins.splitsAssigned.Add(1)
			a.lanes[lane].post(order{what: assign, split: split})
		case errors.Is(err, stream.ErrNoSplitYet):
			a.parking.park()
		case errors.Is(err, io.EOF):
			a.parking.end()
			a.lanes[lane].post(order{what: endInput})
		default:
			return fmt.Errorf("next split: %w", err)
		}
	}
	return a.measure()
}

func (a *attempt) next(lane int) (s stream.Split, err error) {
	defer caught(&err)
	return a.enumerator.Next(lane)
}

// measure asks a source that knows how much there is to read.
func (a *attempt) measure() error {
	sized, ok := a.enumerator.(stream.Sized)
	if !ok {
		return nil
	}
	return guarded(func() error {
		if total, known := sized.Size(); known {
			a.run.show(func(v *view) { v.totalBytes = total })
		}
		return nil
	})
}

// advance begins what is due, unless a checkpoint is under way.
func (a *attempt) advance() error {
	switch {
	case a.outcome != Failed:
	case a.stopping && (a.run.opts.StopWithoutCheckpoint || a.scope == stream.AtEnd) && a.final == nil:
		a.outcome = Stopped
		a.cancel(errAttemptOver) // lanes have no order to leave
	case a.aligning != nil || a.storing != nil || a.final != nil:
	case a.parking.ended == len(a.lanes):
		a.begin(endOfInput)
	case a.stopping:
		a.begin(gracefulStop)
	case len(a.savepoints) > 0 && a.scope == stream.AtEnd:
		a.refuseSavepoints()
	case len(a.savepoints) > 0:
		a.begin(savepoint)
	case a.due && !(a.committing && a.scope == stream.Global):
		a.begin(ordinary)
	}
	return nil
}
