package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

func (a *app) checkpointsList() *cobra.Command {
	var f storeFlags
	var format string
	cmd := &cobra.Command{
		Use:   "list JOB.yaml",
		Short: "List the checkpoints of a job",
		Long: `list prints the checkpoints that are in the store of a job, from the oldest to the newest, and says what a run would begin with.
It may be asked while the job runs.`,
		Example: `  millrace checkpoints list job.yaml
  millrace checkpoints list --job orders --checkpoint-dir gs://my-bucket/checkpoints --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReportFormat(format); err != nil {
				return err
			}
			return f.withStore(cmd, args, func(ctx context.Context, s *jobStore, args []string) error {
				if len(args) > 0 {
					return usagef("list takes one job, got %q too; see %s --help", args[0], cmd.CommandPath())
				}
				return a.listCheckpoints(ctx, s, format)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	return cmd
}

func (a *app) listCheckpoints(ctx context.Context, s *jobStore, format string) error {
	ids, err := s.List(ctx, s.job)
	if err != nil {
		return err
	}
	all := []storedCheckpoint{} // [] in JSON
	var newest *engine.Checkpoint
	for _, id := range ids {
		c, bytes, err := s.read(ctx, id)
		_, newer := errors.AsType[*engine.FormatError](err)
		switch {
		case errors.Is(err, engine.ErrNoCheckpoint):
			continue // deleted meanwhile
		case errors.Is(err, engine.ErrDamaged) || newer:
			all = append(all, storedCheckpoint{ID: id, Bytes: bytes, Fault: err.Error()})
			continue
		case err != nil:
			return err
		}
		newest = c
		all = append(all, stored(c, bytes))
	}
	err = a.output("-", func(w io.Writer) error {
		if format == "json" {
			return writeJSON(w, all)
		}
		return tableOf(w, all)
	})
	if err == nil {
		a.say("%s: %s in %s; %s\n", oneLine(s.job), pluralText(len(all), "checkpoint"), oneLine(s.place), s.next(newest))
	}
	return err
}

// storedCheckpoint is what list tells of a checkpoint; fields are named as /api/job names them.
type storedCheckpoint struct {
	ID           int64     `json:"id"`
	Taken        time.Time `json:"taken,omitzero"`
	Run          string    `json:"run,omitempty"`
	Lanes        int       `json:"lanes"`
	Bytes        int       `json:"bytes"`
	Savepoint    bool      `json:"savepoint,omitempty"`
	Stopped      bool      `json:"stopped,omitempty"`
	Finished     bool      `json:"finished,omitempty"`
	Read         int64     `json:"read"`
	Written      int64     `json:"written"`
	DeadLettered int64     `json:"dead_lettered"`
	Skipped      int64     `json:"skipped"`
	Failed       int64     `json:"failed"`
	Commits      int       `json:"commits"`         // prepared, and not known to be done
	Fault        string    `json:"fault,omitempty"` // why nothing of it can be told
}

func stored(c *engine.Checkpoint, bytes int) storedCheckpoint {
	t := c.Tally
	return storedCheckpoint{
		ID: c.ID, Taken: c.Taken, Run: hex.EncodeToString(c.Run[:]), Lanes: c.Lanes, Bytes: bytes,
		Savepoint: c.Savepoint, Stopped: c.Stopped, Finished: c.Finished,
		Read: t.Read, Written: t.Written, DeadLettered: t.DeadLettered, Skipped: t.Skipped, Failed: t.Failed, Commits: len(c.Committables),
	}
}

// state is in words what kind of checkpoint it is.
func (c *storedCheckpoint) state() string {
	if c.Fault != "" {
		return c.Fault
	}
	var words []string
	if c.Savepoint {
		words = append(words, "savepoint")
	}
	if c.Stopped {
		words = append(words, "stopped")
	}
	if c.Finished {
		words = append(words, "finished")
	}
	return strings.Join(words, ", ")
}

func tableOf(w io.Writer, all []storedCheckpoint) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([][]string, len(all))
	for i, c := range all {
		rows[i] = []string{fmt.Sprint(c.ID), "-", "-", "-", "-", size(int64(c.Bytes)), oneLine(c.state())}
		if c.Fault == "" {
			copy(rows[i][1:], []string{c.Taken.Format(time.RFC3339), fmt.Sprint(c.Lanes), count(c.Read), count(int64(c.Commits))})
		}
	}
	header := []string{"CHECKPOINT", "TAKEN", "LANES", "READ", "TO COMMIT", "SIZE", "STATE"}
	_, err := io.WriteString(w, columns(header, rows, map[int]bool{0: true, 2: true, 3: true, 4: true, 5: true}))
	return err
}

func (a *app) checkpointsShow() *cobra.Command {
	var f storeFlags
	var format string
	cmd := &cobra.Command{
		Use:   "show JOB.yaml [CHECKPOINT|latest]",
		Short: "Show what a checkpoint holds",
		Long: `show prints what a checkpoint holds, the newest one if none is named: what became of the records so far, the splits that lanes
were reading with their positions, the state of each destination, and the commits that are promised and not known to be done.

States and promises are the sink's own, so that only their names and sizes are told.`,
		Example: `  millrace checkpoints show job.yaml
  millrace checkpoints show job.yaml 12 --format json | jq .splits`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReportFormat(format); err != nil {
				return err
			}
			return f.withStore(cmd, args, func(ctx context.Context, s *jobStore, args []string) error {
				if len(args) > 1 {
					return usagef("show takes one checkpoint, got %q too; see %s --help", args[1], cmd.CommandPath())
				}
				which := "latest"
				if len(args) == 1 {
					which = args[0]
				}
				return a.showCheckpoint(ctx, s, which, format)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	return cmd
}

func (a *app) showCheckpoint(ctx context.Context, s *jobStore, which, format string) error {
	c, bytes, err := s.named(ctx, which)
	if err != nil {
		return err
	}
	return a.output("-", func(w io.Writer) error {
		if format == "json" {
			return writeJSON(w, contents(c, bytes))
		}
		_, err := io.WriteString(w, harmless(contentsText(c, bytes)))
		return err
	})
}

// named finds a checkpoint by its number, or the newest one.
func (s *jobStore) named(ctx context.Context, which string) (*engine.Checkpoint, int, error) {
	if which == "latest" {
		c, bytes, err := s.newest(ctx)
		if c == nil && err == nil {
			err = fmt.Errorf("job %s has no checkpoint in %s: it has not taken one, or has another name or store", oneLine(s.job), oneLine(s.place))
		}
		return c, bytes, err
	}
	id, err := checkpointNumber(which)
	if err != nil {
		return nil, 0, err
	}
	c, bytes, err := s.read(ctx, id)
	if errors.Is(err, engine.ErrNoCheckpoint) {
		err = fmt.Errorf("%w; millrace checkpoints list prints those that are there", err)
	}
	return c, bytes, err
}

// shownCheckpoint is all that can be told of a checkpoint.
type shownCheckpoint struct {
	Job string `json:"job"`
	storedCheckpoint
	InputBytes int64       `json:"input_bytes"`
	Splits     []heldSplit `json:"splits"`
	Enumerator int         `json:"enumerator_bytes"` // what is left of the input, as the source keeps it
	States     []heldState `json:"states"`
	Promised   []promised  `json:"to_commit"`
}

type heldSplit struct {
	Lane     int    `json:"lane"`
	Split    string `json:"split"`
	Position int64  `json:"position"`
}

type heldState struct {
	Destination string `json:"destination"`
	Shard       string `json:"shard"`
	Bytes       int    `json:"bytes"`
}

type promised struct {
	Lane       int    `json:"lane"`
	Checkpoint int64  `json:"checkpoint,omitempty"`
	Key        string `json:"key"`
	Bytes      int    `json:"bytes"`
}

func contents(c *engine.Checkpoint, bytes int) shownCheckpoint {
	return shownCheckpoint{
		Job: c.Job, storedCheckpoint: stored(c, bytes), InputBytes: c.InputBytes, Enumerator: len(c.Enumerator),
		Splits: each(c.Splits, func(h engine.HeldSplit) heldSplit { return heldSplit{h.Lane, h.Split.ID, h.Split.Position} }),
		States: each(c.States, func(s stream.State) heldState { return heldState{s.Destination, s.Shard, len(s.Data)} }),
		Promised: each(c.Committables, func(h engine.HeldCommittable) promised {
			return promised{h.Lane, h.Checkpoint, h.Committable.Key, len(h.Committable.Data)}
		}),
	}
}

func contentsText(c *engine.Checkpoint, bytes int) string {
	s := contents(c, bytes)
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("Job", "%s", oneLine(s.Job))
	line("Checkpoint", "%d, %s", s.ID, size(int64(bytes)))
	line("Taken", "%s by run %s, %s", s.Taken.Format(time.RFC3339), s.Run, pluralText(s.Lanes, "lane"))
	if state := s.state(); state != "" {
		line("State", "%s", state)
	}
	line("Records", "%s", tallyText(c.Tally))
	line("Input", "%s fetched", size(s.InputBytes))
	section := func(title string, n int, header []string, right map[int]bool, row func(i int) []string) {
		if n == 0 {
			return
		}
		rows := make([][]string, n)
		for i := range rows {
			rows[i] = row(i)
		}
		fmt.Fprintf(&b, "\n%s\n%s", title, indented(columns(header, rows, right)))
	}
	section("Being read", len(s.Splits), []string{"SPLIT", "LANE", "POSITION"}, map[int]bool{1: true, 2: true}, func(i int) []string {
		h := s.Splits[i]
		return []string{oneLine(h.Split), fmt.Sprint(h.Lane), count(h.Position)}
	})
	section("Destinations", len(s.States), []string{"DESTINATION", "SHARD", "SIZE"}, map[int]bool{2: true}, func(i int) []string {
		h := s.States[i]
		return []string{oneLine(h.Destination), oneLine(h.Shard), size(int64(h.Bytes))}
	})
	section("To commit", len(s.Promised), []string{"WHAT", "LANE", "CHECKPOINT", "SIZE"}, map[int]bool{1: true, 2: true, 3: true}, func(i int) []string {
		h := s.Promised[i]
		return []string{oneLine(h.Key), fmt.Sprint(h.Lane), fmt.Sprint(h.Checkpoint), size(int64(h.Bytes))}
	})
	return b.String()
}

func tallyText(t stream.Tally) string {
	return fmt.Sprintf("read %s = written %s + dead-lettered %s + skipped %s + failed %s",
		count(t.Read), count(t.Written), count(t.DeadLettered), count(t.Skipped), count(t.Failed))
}
