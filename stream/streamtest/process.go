package streamtest

import (
	"context"
	"errors"
	"sync"
)

// Process stands for an operating system's process that may be killed at any instant. Everything that reaches the
// outside world is done in steps of the process; once it is dead, no step does anything, and all fail with ErrKilled.
// What then becomes of the goroutines of the dead does not matter: they can hurt nobody.
//
// It may be used from any goroutine. A nil Process lives for ever.
type Process struct {
	// At is the number of the step, from 1, at which the process dies; 0 is never.
	At int
	// Mode says on which side of that step.
	Mode KillMode

	// Trouble is the number of a step that fails, on the side Mode says, without killing the process; 0 is none.
	Trouble int

	mu    sync.Mutex // guards the fields below
	steps []string
	dead  bool
	died  chan struct{} // closed when dead; made by Context
}

// KillMode says what is left of the step that a process dies at.
type KillMode uint8

const (
	// Before: the step is not done.
	Before KillMode = iota
	// Unanswered: the step is done, and the process does not live to hear of it.
	Unanswered
	// After: the step is done and answered, and the process dies before it does anything else.
	After
)

func (m KillMode) String() string { return [...]string{"before", "unanswered", "after"}[m] }

// KillModes are all of them.
var KillModes = []KillMode{Before, Unanswered, After}

var (
	// ErrKilled is what a dead process gets.
	ErrKilled = errors.New("the process is dead")
	// ErrTrouble is what a step in trouble answers.
	ErrTrouble = errors.New("the step failed")
)

// Context is a context that ends when the process dies, and its cancel function.
func (p *Process) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if p == nil {
		return ctx, func() { cancel(nil) }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.died == nil {
		p.died = make(chan struct{})
	}
	died := p.died
	// Owned by the caller: it ends with the process or the context.
	go func() {
		select {
		case <-died:
			cancel(ErrKilled)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Step does something that matters outside, unless the process is dead.
func (p *Process) Step(name string, do func() error) error {
	if p == nil {
		return do()
	}
	number, alive := p.begin(name)
	if !alive {
		return ErrKilled
	}
	if number == p.Trouble && p.Mode == Before {
		return ErrTrouble
	}
	err := do()
	if number == p.Trouble {
		err = ErrTrouble
	}
	return p.end(number, err)
}

func (p *Process) begin(name string) (number int, alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return 0, false
	}
	p.steps = append(p.steps, name)
	number = len(p.steps)
	if number == p.At && p.Mode == Before {
		p.die()
		return 0, false
	}
	return number, true
}

func (p *Process) end(number int, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrKilled // killed meanwhile by a step of another lane
	}
	if number != p.At {
		return err
	}
	p.die()
	if p.Mode == Unanswered {
		return ErrKilled
	}
	return err
}

// die is called with mu held.
func (p *Process) die() {
	p.dead = true
	if p.died == nil {
		p.died = make(chan struct{})
	}
	close(p.died)
}

// Kill ends the process from outside.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.die()
	}
}

// Dead reports whether the process has been killed.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Steps returns the names of the steps so far, the one it died at included.
func (p *Process) Steps() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.steps...)
}
