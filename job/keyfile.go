package job

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
)

// Keyed says which key of the job file a key file came from that cannot be used. What else is known of the failure is left out,
// as it is elsewhere: neither the path nor the content is ever told.
func (p *Parsed) Keyed(err error) error {
	named := func(key string, err error) error { return fmt.Errorf("%s: %w", key, err) }
	switch {
	case errors.Is(err, pubsubqueue.ErrCredentials):
		return named("sink.bigquery.failures.deadLetter.pubsub.keyFile", pubsubqueue.ErrCredentials)
	case errors.Is(err, bigquery.ErrSourceCredentials) && p.Source.BigQuery != nil && p.Source.BigQuery.Connection != nil:
		return named("source.bigquery.connection.keyFile", bigquery.ErrSourceCredentials)
	case errors.Is(err, bigquery.ErrCredentials): // a source without a connection of its own has the sink's
		return named("sink.bigquery.connection.keyFile", bigquery.ErrCredentials)
	}
	return err
}
