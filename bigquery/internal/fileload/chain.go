package fileload

import (
	"fmt"
	"strconv"
)

// chain finds the job that stands for a planned one, or says that it is to be submitted: B, and after each that has failed B-r1, B-r2
// and so on. It knows no network: whoever drives it does what step says and tells the answer.
//
//	jobs.get              jobs.insert                          then
//	absent                taken                                await it
//	absent                there is one, which is not failed    await that one
//	absent                there is one, which has failed       the next id
//	absent                there is one, which is absent        give up
//	absent                refused                              give up
//	there, and failed                                          the next id
//	there, and not failed                                      await it
//	no answer                                                  give up
type chain struct {
	base  string
	limit int // the highest number behind -r

	step     step
	number   int // of the id in hand
	attached bool
	answer   error // to the submission that met another job
	last     error // why the id before failed
	err      error // with giveUp
}

type step uint8

const (
	look      step = iota // ask for the job of this id
	submit                // it is not there: submit it
	lookAgain             // it was there when it was submitted: ask once more
	await                 // follow it
	giveUp
)

func newChain(base string, limit int) *chain { return &chain{base: base, limit: limit} }

// id is the id in hand.
func (c *chain) id() string { return retryID(c.base, c.number) }

func retryID(base string, number int) string {
	if number == 0 {
		return base
	}
	return base + "-r" + strconv.Itoa(number)
}

// found is the answer that there is a job: failed is why it has failed, nil when it has not, or not yet.
func (c *chain) found(failed error) {
	if failed != nil {
		c.burnt(failed)
		return
	}
	c.step, c.attached = await, true
}

// absent is the answer that there is none.
func (c *chain) absent() {
	if c.step == lookAgain {
		c.fail(fmt.Errorf("submit job %s: the service says that there is such a job, and has none: %w", c.id(), c.answer))
		return
	}
	c.step = submit
}

// unanswered is no answer to the question for a job.
func (c *chain) unanswered(err error) {
	if c.step == lookAgain {
		err = fmt.Errorf("%w; the submission before: %w", err, c.answer)
	}
	c.fail(err)
}

// submitted says that the job has been taken.
func (c *chain) submitted() { c.step, c.attached = await, false }

// met is the answer that there is a job of this id already.
func (c *chain) met(answer error) { c.step, c.answer = lookAgain, answer }

// burnt goes on to the next id: the job of this one has failed, or what it made is gone.
func (c *chain) burnt(why error) {
	c.last = why
	if c.number == c.limit {
		c.fail(fmt.Errorf("job %s: %w: it and all up to %s have failed, the last one so: %w", c.base, ErrRetryIDsExhausted, c.id(), why))
		return
	}
	c.number++
	c.step, c.attached = look, false
}

func (c *chain) fail(err error) { c.step, c.err = giveUp, err }
