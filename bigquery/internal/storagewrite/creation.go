package storagewrite

import (
	"fmt"

	"github.com/millrace-dev/millrace/internal/retry"
)

// creationStep is what a creation asks its driver to do next. Behind each stands the method that tells it how that went.
type creationStep uint8

const (
	createStreamStep creationStep = iota // create the stream: streamMade
	createTableStep                      // create the table: tableMade
	createWaitStep                       // wait as the schedule says: waited
	createDoneStep
	createFailStep // err ends the writer
)

// creation is how a stream comes to be, with its table if that is missing: a state machine without I/O.
type creation struct {
	createIfNeeded bool
	schedule       retry.Schedule

	step         creationStep
	attempt      int // calls that made no stream
	tableCreated bool
	verdict      *verdict
	err          error // with createFailStep
}

// streamMade reports the answer to a call.
func (c *creation) streamMade(v *verdict) {
	if v == nil {
		c.step = createDoneStep
		return
	}
	c.attempt++
	c.verdict = v
	switch {
	case v.missing() && c.createIfNeeded && !c.tableCreated:
		c.step = createTableStep
	case v.kind == KindTransient, v.missing() && c.tableCreated:
		c.again(createWaitStep)
	default:
		c.fail(v.err)
	}
}

// tableMade reports how the creation of the table went. The write service may know of it at once, so there is no wait
// before the next call.
func (c *creation) tableMade(err error) {
	c.tableCreated = true
	if err != nil {
		c.fail(fmt.Errorf("create the table: %w; before that: %w", err, c.verdict.err))
		return
	}
	c.again(createStreamStep)
}

// again goes on with another call if the budget allows one.
func (c *creation) again(next creationStep) {
	if c.schedule.Spent(c.attempt) {
		c.fail(fmt.Errorf("%w: %w", retry.ErrBudgetSpent, c.verdict.err))
		return
	}
	c.step = next
}

// waited reports that a wait is over.
func (c *creation) waited() { c.step = createStreamStep }

func (c *creation) fail(err error) { c.step, c.err = createFailStep, err }
