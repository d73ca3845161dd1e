package fileload

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Target is one destination as one writer sees it, good until the next Flush.
type Target struct {
	outcome.Place

	conversion *conversion // nil before the first row, and once it is released
	file       *stagedFile // nil unless one is open
	rows       int         // written and not counted yet
	bytes      int         // theirs

	// Of the shelf, while a file is open.
	touched        time.Duration
	before, behind *Target
}

// conversion is how rows of a destination become those of a file.
type conversion struct {
	fingerprint uint64
	plan        *staging.Plan
	encoding    staging.Encoding
	check       *staging.AvroEncoder
}

// misconfiguration is an error that no other attempt would be without.
type misconfiguration struct{ error }

func (m misconfiguration) Unwrap() error { return m.error }

// Permanent says that the next attempt would meet it again: see engine.Restart.
func (m misconfiguration) Permanent() bool { return !errors.Is(m.error, row.ErrUnavailable) }

// convert reads the schema of a destination's rows, and decides what its files are. The fingerprint is read first: a change in
// between then costs a file too many instead of values.
func (c *Config) convert(dst table.Destination, log *slog.Logger) (*conversion, error) {
	out := &conversion{fingerprint: c.Rows.Fingerprint(dst)}
	schema, err := c.Rows.Schema(dst)
	if err != nil {
		return nil, misconfiguration{fmt.Errorf("table schema of %s: %w", dst, err)}
	}
	descriptor, err := c.Rows.Descriptor(dst)
	if err != nil {
		return nil, misconfiguration{fmt.Errorf("row descriptor of %s: %w", dst, err)}
	}
	if out.plan, err = staging.Compile(schema, descriptor); err == nil {
		out.encoding = c.Options.Encoding(c.Choice.Of(dst, schema, log))
		err = out.encoding.Check(out.plan)
	}
	if err != nil {
		return nil, misconfiguration{fmt.Errorf("FILE_LOADS cannot stage rows of %s: %w", dst, err)}
	}
	out.check = staging.NewAvroEncoder(out.plan)
	return out, nil
}
