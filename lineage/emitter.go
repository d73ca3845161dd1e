package lineage

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// Options say where events go: to a file, to a server, or to both. The zero value sends them nowhere.
type Options struct {
	// File is appended to, one event a line. "" is no file.
	File string
	// HTTP is a server of OpenLineage. nil is none.
	HTTP *HTTP

	// Meter and Log are silent by default.
	Meter stream.Meter
	Log   *slog.Logger
}

// CloseTimeout is a good time for Close to wait.
const CloseTimeout = 10 * time.Second

// Emitter takes the events of one run. Safe for concurrent use.
type Emitter struct {
	outlets []*outlet
	log     *slog.Logger
}

// New makes an emitter. Faults of the options are the only errors there are; nothing is opened before the first event.
func New(o Options) (*Emitter, error) {
	if o.Meter == nil {
		o.Meter = stream.NoMeter
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Emitter{log: o.Log}
	if o.HTTP != nil {
		if err := o.HTTP.Validate(); err != nil {
			return nil, fmt.Errorf("lineage: %w", err)
		}
		e.add("http", newServer(*o.HTTP), o)
	}
	if o.File != "" {
		e.add("file", &file{path: o.File}, o)
	}
	return e, nil
}

func (e *Emitter) add(to string, t transport, o Options) {
	label := stream.Label{Key: "to", Value: to}
	e.outlets = append(e.outlets, newOutlet(t, outletConfig{
		schedule: sending,
		log:      o.Log.With("to", to),
		sent:     o.Meter.Counter(eventsSent, label), lost: o.Meter.Counter(eventsLost, label),
	}))
}

// sending paces events that fail in passing: half a minute in all.
var sending = retry.Schedule{Initial: time.Second, Max: 15 * time.Second, Attempts: 6}

// Emit hands over an event and returns at once.
func (e *Emitter) Emit(ev *RunEvent) {
	body, err := json.Marshal(ev)
	if err != nil { // of what is text and numbers there is none
		e.log.Warn("lineage event given up", "event", string(ev.Type), "run", ev.Run.ID, "error", err)
		return
	}
	for _, o := range e.outlets {
		o.put(item{ev.Type, ev.Run.ID, body})
	}
}

// Close waits until everything is sent or given up, or that time is over.
func (e *Emitter) Close(within time.Duration) error {
	for _, o := range e.outlets {
		o.finish()
	}
	late := time.Now().Add(within)
	var errs []error
	for _, o := range e.outlets {
		errs = append(errs, o.close(time.Until(late)))
	}
	return errors.Join(errs...)
}
