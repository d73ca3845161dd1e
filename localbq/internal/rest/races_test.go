package rest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func TestLoadsMeetChangesOfTheirTable(t *testing.T) {
	x := setupTransfers(t)
	x.table("t", "a:INTEGER")
	x.puts("one.json", `{"a": 1}`)
	const loads = 40
	var changes sync.WaitGroup
	done := make(chan struct{})
	changes.Go(func() {
		for i := 0; i < 2000; i++ {
			select {
			case <-done:
				return
			default:
			}
			if _, err := x.store.UpdateTable(x.ref("t"), "", func(d *schema.Definition) error {
				if d.Description = fmt.Sprint(i); i%50 == 0 {
					d.Schema.Fields = append(d.Schema.Fields, &schema.Field{Name: fmt.Sprint("x", i), Type: schema.Int64})
				}
				return nil
			}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range loads {
		job := x.run(fmt.Sprint("load", i), `"load":{"sourceUris":["gs://b-1/one.json"],"sourceFormat":"NEWLINE_DELIMITED_JSON","destinationTable":{"projectId":"p","datasetId":"d","tableId":"t"}}`)
		if f := failure(job); f != "" {
			t.Errorf("load %d: %s", i, f)
		}
	}
	close(done)
	changes.Wait()
}
