package localbq_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// TestChangesAgreeWithTheirModel streams seeded changes of few keys, in requests of any size, over a service that is closed and
// opened again, and compares the rows with what sorting the changes of each key says.
func TestChangesAgreeWithTheirModel(t *testing.T) {
	for seed := *modelSeed; seed < *modelSeed+*models; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			open := func() *localbq.Instance {
				bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir, AutoCreateDataset: true})
				if err != nil {
					t.Fatal(err)
				}
				return bq
			}
			bq := open()
			keyedTable(t, bq, "d.t", "id")
			r := describe(t, "id int64", "v string", "_CHANGE_TYPE string", "_CHANGE_SEQUENCE_NUMBER string")
			best := map[int]modelChange{}
			ingested := 0
			for range 4 {
				client := writeClient(t, bq)
				call := connect(t, client)
				for range 10 {
					var texts []string
					for range 1 + random.IntN(6) {
						c := newModelChange(random, ingested)
						texts = append(texts, c.text())
						if !c.below(best[c.id]) {
							best[c.id] = c
						}
						ingested++
					}
					call.append(r.first(t, stream("d.t"), texts...))
					wantRows(t, bq, "d.t", modelRows(best)...)
				}
				if err := bq.Close(); err != nil {
					t.Fatal(err)
				}
				bq = open()
			}
			wantRows(t, bq, "d.t", modelRows(best)...)
			if lost, err := bq.Audit().AckedNotVisible("d.t"); err != nil || len(lost) != 0 {
				t.Errorf("lost: %v, %v", lost, err)
			}
			if err := bq.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// modelChange is a change of one key.
type modelChange struct {
	id       int
	deletes  bool
	sequence string
	ingested int // its place among all
}

func newModelChange(random *rand.Rand, ingested int) modelChange {
	c := modelChange{id: random.IntN(5), deletes: random.IntN(3) == 0, ingested: ingested}
	if random.IntN(5) == 0 {
		return c // without a sequence
	}
	sections := make([]string, 1+random.IntN(3))
	for i := range sections {
		sections[i] = fmt.Sprintf([]string{"%X", "%x", "%04x"}[random.IntN(3)], random.IntN(20))
	}
	c.sequence = strings.Join(sections, "/")
	return c
}

func (c modelChange) text() string {
	if c.deletes {
		return remove(c.id, c.sequence)
	}
	return upsert(c.id, c.value(), c.sequence)
}

func (c modelChange) value() string { return fmt.Sprint("v", c.ingested) }

// order is what changes of a key are sorted by, before their ingestion: those without a sequence come first.
func (c modelChange) order() []uint64 {
	order := make([]uint64, 5)
	if c.sequence == "" {
		return order
	}
	order[0] = 1
	for i, section := range strings.Split(c.sequence, "/") {
		order[1+i], _ = strconv.ParseUint(section, 16, 64)
	}
	return order
}

func (c modelChange) below(other modelChange) bool {
	return cmp.Or(slices.Compare(c.order(), other.order()), cmp.Compare(c.ingested, other.ingested)) < 0
}

// modelRows are the rows of the best changes, sorted as text.
func modelRows(best map[int]modelChange) []string {
	var rows []string
	for _, c := range best {
		if !c.deletes {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"v":%q,"w":null}`, c.id, c.value()))
		}
	}
	slices.Sort(rows)
	if len(rows) == 0 {
		return []string{""}
	}
	return rows
}
