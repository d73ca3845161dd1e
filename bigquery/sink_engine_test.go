package bigquery

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// noPolicy is a failure policy whose handlers cannot be made.
type noPolicy struct{ err error }

func (p noPolicy) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return nil, p.err
}

// closing is a failure policy whose handlers count how often they are closed, and complain.
type closing struct {
	taking
	closed int
}

func (c *closing) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return c, nil
}

func (c *closing) Close() error {
	c.closed++
	return errors.New("cannot be closed")
}

// SW-24: a lane that cannot be made after its writer was closes the writer's handler, and fails with what went wrong
// first.
func TestHandlerOfALaneThatCannotBeMade(t *testing.T) {
	t.Parallel()
	handler := &closing{}
	sink, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](newEventRows(t)), SinkOptions{Connection: nowhere, Failures: handler})
	if err != nil {
		t.Fatal(err)
	}
	first := errors.New("no place for what fails")
	_, err = engine.Run(t.Context(), engine.Job[streamtest.Item, []byte]{
		Name: "j", Source: streamtest.Ranges{Splits: 1, Rows: 1}, Sink: sink, Failures: noPolicy{first},
		Func: func(context.Context, *stream.Record[streamtest.Item], func(*stream.Record[[]byte]) error) error {
			return nil
		},
	}, engine.Options{Restart: engine.Restart{Policy: engine.NoRestart}})
	if !errors.Is(err, first) || handler.closed != 1 {
		t.Errorf("got %v, and the handler was closed %d times", err, handler.closed)
	}
}
