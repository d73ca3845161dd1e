package writeapi

import (
	"fmt"

	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// Change data capture: rows of a descriptor with _CHANGE_TYPE, and _CHANGE_SEQUENCE_NUMBER if they have an order of their own,
// are changes of the rows with their primary keys (BigQuery documentation, "Stream table updates with change data capture").
// They are taken on the default stream, as proto rows.

// takesChanges refuses changes where the service takes none.
func (c *connection) takesChanges(d *destination) error {
	switch {
	case !d.plan.Changes():
		return nil
	case !c.stream.isDefault() && !(c.server.Profile.CommittedChanges && c.created.Kind() == store.Committed):
		return invalid(c.stream.full, "Change data capture is only supported on the default stream.")
	case len(d.table.Info().PrimaryKey) == 0:
		return invalid(c.stream.full, "Change data capture requires a primary key, and table %s has none.", d.table.Ref())
	}
	return nil
}

// Removed are the rows that changes took away, as the audit log has them.
func Removed(w store.Written) (out []audit.Range) {
	for _, r := range w.Gone {
		out = append(out, audit.Range(r))
	}
	return out
}

// mixedNote says that the order of some changes is one that BigQuery leaves open.
func mixedNote(count int64) string {
	return fmt.Sprintf("%d changes of keys that have changes with and without a sequence number", count)
}
