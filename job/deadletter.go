package job

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
	"github.com/millrace-dev/millrace/deadletter/tablequeue"
	"github.com/millrace-dev/millrace/stream"
)

// deadLetter checks where dead letters go. to is where records go.
func (c checker) deadLetter(key string, d *DeadLetter, to string) {
	if !c.one(key, "file", "pubsub", "table") {
		return
	}
	if c.there(key+".maxFileBytes") && !c.there(key+".file") {
		c.fault(key+".maxFileBytes", "means nothing unless file is given")
	}
	switch {
	case !c.sound(key):
	case c.there(key + ".file"):
		if d.File == "" || strings.ContainsRune(d.File, 0) {
			c.fault(key+".file", "%q is not a path: expected a file name", d.File)
		}
	case c.there(key + ".table"):
		if _, err := table.ParseDestination(d.Table); err != nil {
			c.fault(key+".table", "%v", err)
		} else if d.Table == to {
			c.fault(key+".table", "is the table that records are written to: dead letters have columns of their own")
		}
	case d.PubSub != nil:
		c.pubsub(key+".pubsub", d.PubSub)
	}
}

func (c checker) pubsub(key string, p *PubSub) {
	if n := p.MaxInFlightMessages; n != nil && *n < -1 {
		c.fault(key+".maxInFlightMessages", "%d: must be -1, 0 or positive", *n)
		return
	}
	for name, text := range map[string]string{"keyFile": p.KeyFile, "endpoint": p.Endpoint} {
		if c.there(key+"."+name) && strings.TrimSpace(text) == "" {
			c.fault(key+"."+name, "must not be blank: leave the key out")
			return
		}
	}
	if err := p.options().Validate(p.Topic); err != nil {
		for line := range strings.Lines(err.Error()) {
			line = strings.TrimSpace(line)
			at := key
			for _, known := range keysOfPubSub {
				if strings.HasPrefix(line, known.field) {
					at = key + "." + known.key
				}
			}
			c.fault(at, "%s", line)
		}
	}
}

// keysOfPubSub are the keys that messages about options begin with.
var keysOfPubSub = []struct{ field, key string }{
	{"dead-letter topic", "topic"}, {"MaxInFlightMessages", "maxInFlightMessages"}, {"FlushTimeout", "flushTimeout"},
	{"ShutdownTimeout", "shutdownTimeout"}, {"KeyFile", "keyFile"}, {"Endpoint", "endpoint"},
}

func (p *PubSub) options() pubsubqueue.Options {
	o := pubsubqueue.Options{FlushTimeout: p.FlushTimeout, ShutdownTimeout: p.ShutdownTimeout, KeyFile: p.KeyFile, Endpoint: p.Endpoint}
	switch n := p.MaxInFlightMessages; {
	case n == nil:
	case *n == 0:
		o.MaxInFlightMessages = pubsubqueue.Synchronous
	case *n == -1:
		o.MaxInFlightMessages = pubsubqueue.Unbounded
	default:
		o.MaxInFlightMessages = *n
	}
	return o
}

// failures is what becomes of records that cannot be written.
func (pl *Pipeline) failures(f Failures, c bigquery.Connection, s Surroundings) (stream.FailurePolicy, error) {
	switch f.Policy {
	case "drop":
		return stream.LogAndDrop(), nil
	case "dead-letter":
		return pl.queue(f.DeadLetter, c, s)
	}
	return stream.FailJob(), nil
}

func (pl *Pipeline) queue(d *DeadLetter, c bigquery.Connection, s Surroundings) (stream.FailurePolicy, error) {
	b := pl.file.Sink.BigQuery
	switch {
	case d.PubSub != nil:
		pl.DeadLetterTopic = d.PubSub.Topic
		o := d.PubSub.options()
		if o.KeyFile != "" {
			o.KeyFile = pl.file.path(o.KeyFile)
		}
		return pubsubqueue.New(d.PubSub.Topic, o)
	case d.Table != "":
		dst, err := table.ParseDestination(d.Table)
		if err != nil {
			return nil, err
		}
		pl.DeadLetterTable = d.Table
		return tablequeue.New(dst, tablequeue.Options{Connection: c, CreateDatasets: b.Create.Datasets || s.CreateDatasets})
	}
	pl.DeadLetters = pl.file.path(d.File)
	if pl.source != nil && (pl.source.Reads(pl.DeadLetters) || pl.source.Reads(filequeue.Name(pl.DeadLetters, 2))) {
		return nil, fmt.Errorf("sink.bigquery.failures.deadLetter.file: %s is among the files that are read: dead letters would become records, "+
			"and those dead letters again; write them to another file", pl.DeadLetters)
	}
	return filequeue.New(pl.DeadLetters, filequeue.Options{MaxFileBytes: int64(d.MaxFileBytes)})
}
