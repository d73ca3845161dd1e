package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func (a *app) savepoint() *cobra.Command {
	var addr, tokenEnv string
	cmd := &cobra.Command{
		Use:   "savepoint --http ADDRESS --http-token-env NAME",
		Short: "Ask a running job for a savepoint",
		Long: `savepoint asks a job that runs with --http and --http-token-env for a checkpoint that is kept until somebody deletes it, waits
until it is stored, and prints its number. run --from takes that number.`,
		Example: `  JOB_TOKEN=… millrace checkpoints savepoint --http localhost:9090 --http-token-env JOB_TOKEN
  millrace run job.yaml --from "$(millrace checkpoints savepoint --http :9090 --http-token-env JOB_TOKEN)"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := savepointURL(addr)
			if err != nil {
				return err
			}
			flags := httpFlags{addr: addr, tokenEnv: tokenEnv}
			token, err := flags.token()
			if err != nil {
				return err
			}
			if token == "" {
				return usagef("a savepoint needs the job's token: name the environment variable that holds it with --http-token-env")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			id, err := askSavepoint(ctx, at, token)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, id)
			return err
		},
	}
	cmd.Flags().StringVar(&addr, "http", "", "`address` of the running job, as it was given to run --http; an http or https URL where something stands before it")
	cmd.Flags().StringVar(&tokenEnv, "http-token-env", "", "`name` of the environment variable with the job's token")
	return cmd
}

// savepointURL is where the job behind an address takes savepoints.
func savepointURL(addr string) (string, error) {
	if addr == "" {
		return "", usagef("which job is to take a savepoint? name its address with --http")
	}
	base := addr
	if !strings.Contains(addr, "://") {
		base = "http://" + loopback(addr)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", usagef("--http %q: expected an address, host:port or :port, or an http or https URL", addr)
	}
	return u.JoinPath("api", "savepoint").String(), nil
}

// longestAnswer is more than a job answers about a savepoint.
const longestAnswer = 1 << 16

func askSavepoint(ctx context.Context, at, token string) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
	if err != nil {
		return 0, usagef("--http: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	// The token goes to the one that was named and to nobody else.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, fmt.Errorf("no job answers at %s: %w; is it running, with --http at this address?", at, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	var body struct {
		Checkpoint int64  `json:"checkpoint"`
		Error      string `json:"error"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, longestAnswer)).Decode(&body)
	switch {
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("savepoint refused by %s: %s", at, oneLine(cmp.Or(body.Error, answer.Status)))
	case err != nil || body.Checkpoint < 1:
		return 0, fmt.Errorf("%s answers, and not as a job of millrace does: is it the address of one?", at)
	}
	return body.Checkpoint, nil
}
