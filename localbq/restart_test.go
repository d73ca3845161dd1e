package localbq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	run := func(f func(*localbq.Instance)) {
		bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir, AutoCreateDataset: true})
		if err != nil {
			t.Fatal(err)
		}
		f(bq)
		if err := bq.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ids := describe(t, "id int64")
	run(func(bq *localbq.Instance) {
		makeTable(t, bq, "d.t", column("id", "INTEGER"))
		c := writeClient(t, bq)
		connect(t, c).append(ids.first(t, stream("d.t"), "id: 1", "id: 2"))
		_, err := localbq.Start(context.Background(), localbq.Config{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "in use by another local BigQuery") {
			t.Errorf("a second instance on the folder: %v", err)
		}
	})
	for round := range 2 {
		run(func(bq *localbq.Instance) {
			connect(t, writeClient(t, bq)).append(ids.first(t, stream("d.t"), fmt.Sprint("id: ", 3+round)))
		})
	}
	run(func(bq *localbq.Instance) {
		wantContents(t, bq, "d.t", `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`)
		visible, err := bq.Audit().Visible("d.t")
		if err != nil || len(visible) != 4 || visible[3].ID != 3 || visible[3].Digest == 0 {
			t.Errorf("the audit log knows %+v, %v", visible, err)
		}
		if left, err := bq.Audit().Unaccounted("d.t"); err != nil || len(left) != 0 {
			t.Errorf("unaccounted: %v, %v", left, err)
		}
	})
}

// TestKillServer kills a serving process at random points: every row that was acknowledged is there and accounted for.
func TestKillServer(t *testing.T) {
	dir := t.TempDir()
	ids := describe(t, "id int64")
	var acked []string
	sent := 0
	for range 6 {
		child, client := serveChild(t, dir)
		var mu sync.Mutex // guards acked and sent, and the countdown
		countdown := 20 + rand.IntN(200)
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				c, err := client.AppendRows(context.Background())
				for err == nil {
					mu.Lock()
					first, second := sent, sent+1
					sent += 2
					mu.Unlock()
					if err = c.Send(ids.first(t, stream("d.t"), fmt.Sprint("id: ", first), fmt.Sprint("id: ", second))); err != nil {
						break
					}
					if _, err = c.Recv(); err != nil {
						break
					}
					mu.Lock()
					acked = append(acked, fmt.Sprint(first), fmt.Sprint(second))
					if countdown--; countdown == 0 {
						_ = child.Process.Kill()
					}
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		_ = child.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}

		bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		exactly, err := bq.Audit().ExactlyOnce("d.t", "id", acked)
		if err != nil || len(exactly.Missing)+len(exactly.Twice) != 0 {
			t.Errorf("acknowledged rows: missing %v, twice %v, %v", exactly.Missing, exactly.Twice, err)
		}
		rows, _ := bq.NumRows("d.t")
		visible, err := bq.Audit().Visible("d.t")
		if err != nil || int64(len(visible)) != rows || rows%2 != 0 {
			t.Errorf("%d rows, of which the audit log knows %d, %v", rows, len(visible), err)
		}
		if left, err := bq.Audit().Unaccounted("d.t"); err != nil || len(left) != 0 {
			t.Errorf("unaccounted: %v, %v", left, err)
		}
		if lost, err := bq.Audit().AckedNotVisible("d.t"); err != nil || len(lost) != 0 {
			t.Errorf("acknowledged and not visible: %v, %v", lost, err)
		}
		if err := bq.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged rows of %d sent survived", len(acked), sent)
}
