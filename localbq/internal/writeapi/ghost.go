package writeapi

import (
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/store"
	"github.com/millrace-dev/millrace/localbq/internal/storm"
)

// ghostHang is how long an append to a vanished ghost hangs (published by another client).
const ghostHang = 120 * time.Second

// haunts reports whether the connection goes on with a table that has been deleted and made again as t since it was opened.
func (c *connection) haunts(d *destination, t *store.Table) bool {
	if d.haunted {
		return true
	}
	w := &c.server.windows
	if !c.stream.isDefault() || c.opened >= t.Instance() {
		return false
	}
	if _, until, on := w.storms.On(storm.RecreateGhost, t.Instance()); on {
		d.haunted, d.vanishes = true, until
		return true
	}
	if w.profile.RecreateGhost == (profile.Window{}) {
		return false
	}
	first := t.Infos()[0]
	d.haunted, d.vanishes = true, first.Created.Add(w.of(t, first).ghost)
	return true
}

// ghost answers for a table that is not there any more: rows are acknowledged and lost, later nothing comes back at all.
func (c *connection) ghost(d *destination) (*storagepb.AppendRowsResponse, error) {
	if c.server.Clock.Now().Before(d.vanishes) {
		return &storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_AppendResult_{
			AppendResult: &storagepb.AppendRowsResponse_AppendResult{},
		}}, nil
	}
	_ = clock.Sleep(c.ctx, c.server.Clock, ghostHang)
	f := &failure{code: codes.DeadlineExceeded, entity: c.stream.full, message: "Deadline exceeded. Entity: " + c.stream.full}
	return nil, f.ending()
}
