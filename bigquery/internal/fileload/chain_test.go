package fileload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestChain plays the service's answers to a chain: what is there under each id, and what becomes of submissions.
func TestChain(t *testing.T) {
	t.Parallel()
	refused, duplicate, noAnswer := errors.New("refused"), errors.New("duplicate"), errors.New("no answer")
	type answers struct {
		gets    map[string][]string // by id: absent, live, failed, error; the last one for ever; absent without any
		inserts map[string]error    // nil: taken
	}
	for name, c := range map[string]struct {
		answers
		limit    int
		id       string // of the job to await
		attached bool
		errs     []error // to be found, instead
		text     string
		gots     string // calls: g and i
	}{
		"absent, taken":                                  {id: "B", gots: "gi"},
		"FL-67 live: no submission":                      {answers: answers{gets: map[string][]string{"B": {"live"}}}, id: "B", attached: true, gots: "g"},
		"FL-68 failed, the next id is free":              {answers: answers{gets: map[string][]string{"B": {"failed"}}}, id: "B-r1", gots: "ggi"},
		"FL-68 failed, the next id is live":              {answers: answers{gets: map[string][]string{"B": {"failed"}, "B-r1": {"live"}}}, id: "B-r1", attached: true, gots: "gg"},
		"FL-69 all have failed":                          {answers: answers{gets: map[string][]string{"B": {"failed"}, "B-r1": {"failed"}, "B-r2": {"failed"}, "B-r3": {"failed"}, "B-r4": {"failed"}, "B-r5": {"failed"}}}, limit: 5, errs: []error{ErrRetryIDsExhausted}, text: "job B: no ids are left to run the job again with: it and all up to B-r5 have failed, the last one so: B-r5 has failed", gots: "gggggg"},
		"FL-69 all but the one that a higher limit adds": {answers: answers{gets: map[string][]string{"B": {"failed"}, "B-r1": {"failed"}, "B-r2": {"failed"}, "B-r3": {"failed"}, "B-r4": {"failed"}, "B-r5": {"failed"}}}, limit: 6, id: "B-r6", gots: "gggggggi"},
		"FL-71 taken by somebody else: live":             {answers: answers{gets: map[string][]string{"B": {"absent", "live"}}, inserts: map[string]error{"B": duplicate}}, id: "B", attached: true, gots: "gig"},
		"FL-71 taken by somebody else: failed":           {answers: answers{gets: map[string][]string{"B": {"absent", "failed"}}, inserts: map[string]error{"B": duplicate}}, id: "B-r1", gots: "giggi"},
		"FL-71 taken by somebody else: absent":           {answers: answers{inserts: map[string]error{"B": duplicate}}, errs: []error{duplicate}, text: "submit job B: ", gots: "gig"},
		"FL-71 taken by somebody else: no answer":        {answers: answers{gets: map[string][]string{"B": {"absent", "error"}}, inserts: map[string]error{"B": duplicate}}, errs: []error{duplicate, noAnswer}, gots: "gig"},
		"no answer to the first question":                {answers: answers{gets: map[string][]string{"B": {"error"}}}, errs: []error{noAnswer}, gots: "g"},
		"refused: no other question":                     {answers: answers{inserts: map[string]error{"B": refused}}, errs: []error{refused}, gots: "gi"},
		"no other ids are allowed":                       {answers: answers{gets: map[string][]string{"B": {"failed"}}}, limit: 0, id: "", errs: []error{ErrRetryIDsExhausted}, gots: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := c.limit
			if limit == 0 && c.errs == nil {
				limit = 5
			}
			chain, gots := newChain("B", limit), ""
			for chain.step != await && chain.step != giveUp {
				if chain.step == submit {
					gots += "i"
					switch err := c.inserts[chain.id()]; {
					case err == nil:
						chain.submitted()
					case errors.Is(err, duplicate):
						chain.met(err)
					default:
						chain.fail(err)
					}
					continue
				}
				gots += "g"
				left, got := c.gets[chain.id()], "absent"
				if len(left) > 0 {
					got = left[0]
				}
				if len(left) > 1 {
					c.gets[chain.id()] = left[1:]
				}
				switch got {
				case "absent":
					chain.absent()
				case "live":
					chain.found(nil)
				case "failed":
					chain.found(fmt.Errorf("%s has failed", chain.id()))
				case "error":
					chain.unanswered(noAnswer)
				}
			}
			if gots != c.gots {
				t.Errorf("calls %s, want %s", gots, c.gots)
			}
			if c.errs == nil && (chain.err != nil || chain.id() != c.id || chain.attached != c.attached) {
				t.Errorf("awaits %s, attached %v, %v; want %s, %v", chain.id(), chain.attached, chain.err, c.id, c.attached)
			}
			for _, want := range c.errs {
				if !errors.Is(chain.err, want) || !strings.Contains(chain.err.Error(), c.text) {
					t.Errorf("got %v, want %v and %q", chain.err, want, c.text)
				}
			}
		})
	}
}

// TestChainAfterSuccess goes on behind a job that succeeded, whose table is gone (FL-77).
func TestChainAfterSuccess(t *testing.T) {
	t.Parallel()
	c := newChain("B", 5)
	c.found(nil)
	c.burnt(errors.New("its table is gone"))
	if c.step != look || c.id() != "B-r1" || c.attached {
		t.Errorf("step %d of %s, attached %v", c.step, c.id(), c.attached)
	}
}
