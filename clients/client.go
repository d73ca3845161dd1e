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

// results installs a client and runs its program. There is one result for each step: "ok", or what is wrong.
func (c client) results(ctx context.Context, s *service) map[string]string {
	for _, command := range c.install {
		if _, err := c.command(ctx, installTime, nil, command); err != nil {
			return all(fmt.Sprintf("not installed: %v", err))
		}
	}
	out, err := c.command(ctx, runTime, s.environment("clients_"+c.name), c.run)
	found := parse(out)
	for _, step := range steps {
		if found[step] == "" {
			found[step] = fmt.Sprintf("not run: %v", err)
		}
	}
	for step := range found {
		if !slices.Contains(steps, step) {
			found[step] = "not a step of the suite"
		}
	}
	return found
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

func all(result string) map[string]string {
	found := map[string]string{}
	for _, step := range steps {
		found[step] = result
	}
	return found
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
