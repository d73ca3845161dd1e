package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// service is a running `millrace local`.
type service struct {
	cmd       *exec.Cmd
	out       *bufio.Reader
	endpoints struct{ REST, GRPC, Storage, Project string }
}

const millrace = "../.clients/millrace"

// start builds the command and starts a local BigQuery, in memory and on free ports.
func start(ctx context.Context) (*service, error) {
	build := exec.CommandContext(ctx, "go", "build", "-o", "clients/"+millrace, "./cmd/millrace")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w", build.Args, err)
	}
	s := &service{cmd: exec.CommandContext(ctx, millrace, "local", "--rest", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
		"--storage", "127.0.0.1:0", "--create-datasets=false", "-q")}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	// One line says where it is, once it answers.
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.endpoints)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("millrace local: expected a line of JSON with its addresses, got %q: %w", line, err), s.stop())
	}
	return s, nil
}

// stop ends the service and fails when it did not end well.
func (s *service) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// environment is how a client's program learns where the service is, and where it may work.
func (s *service) environment(dataset string) []string {
	return []string{
		"LOCAL_REST=" + s.endpoints.REST,
		"LOCAL_GRPC=" + s.endpoints.GRPC,
		"LOCAL_STORAGE=" + s.endpoints.Storage,
		"LOCAL_PROJECT=" + s.endpoints.Project,
		"LOCAL_DATASET=" + dataset,
	}
}
