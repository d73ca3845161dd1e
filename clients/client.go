package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// results installs a client and runs its program. There is one result for each of the client's steps, "ok" or what is wrong,
// and one for the program where that did not end well.
func (c client) results(ctx context.Context, s *service) map[string]string {
	found, err := c.reported(ctx, s)
	for name := range found {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name && s.of(c.name) }) {
			found[name] = "not a step of this client"
		}
	}
	for _, step := range steps {
		if step.of(c.name) && found[step.name] == "" {
			found[step.name] = "not reported"
		}
	}
	if err != nil {
		found["program"] = err.Error()
	}
	return found
}

// reported are the steps that the client's program says it did.
func (c client) reported(ctx context.Context, s *service) (map[string]string, error) {
	for _, command := range c.install {
		if _, err := c.command(ctx, installTime, nil, command); err != nil {
			return map[string]string{}, fmt.Errorf("not installed: %w", err)
		}
	}
	out, err := c.command(ctx, runTime, s.environment("clients_"+c.name), c.run)
	return parse(out), err
}

// command runs one command to its end and gives what it printed to standard output; an error has the end of what it printed
// to standard error.
func (c client) command(ctx context.Context, limit time.Duration, environment, command []string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("more than %v", limit))
	defer cancel()
	var out, complaints strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, tail(out.String()+complaints.String()))
}

// tail is the end of a text, where what went wrong stands.
func tail(s string) string {
	s = strings.TrimSpace(s)
	if long := len(s) - 1000; long > 0 {
		s = "…" + s[long:]
	}
	return s
}

// parse reads what a program printed.
func parse(out string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(out) {
		if step, result, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			found[step] = result
		}
	}
	return found
}
