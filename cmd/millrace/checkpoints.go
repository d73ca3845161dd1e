package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/job"
)

func (a *app) checkpoints() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "checkpoints",
		Short: "Look into a checkpoint store, and ask a job for a savepoint",
		Long: `checkpoints is about what a job keeps to go on from: list and show look into its store, savepoint asks a job that runs for a
checkpoint that is kept, and delete takes checkpoints away.`,
		Example: `  millrace checkpoints list job.yaml
  millrace checkpoints show job.yaml latest
  millrace checkpoints savepoint --http :9090 --http-token-env JOB_TOKEN`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.checkpointsList(), a.checkpointsShow(), a.checkpointsDelete(), a.savepoint())
	return cmd
}

// storeFlags name the checkpoints of a job: of a job file, or by name.
type storeFlags struct {
	job, store string
	set        []string
}

func (f *storeFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.job, "job", "", "`name` of the job, in place of a job file; with --checkpoint-dir")
	fs.StringVar(&f.store, "checkpoint-dir", "", "`URL` of the checkpoint store, file://folder or gs://bucket/prefix (default: as the job file says)")
	fs.StringArrayVar(&f.set, "set", nil, "`key=value` in place of what the job file says, with a dotted key; may be repeated")
}

// cut takes the job file off the arguments, if there is to be one.
func (f *storeFlags) cut(cmd *cobra.Command, args []string) (file string, rest []string, err error) {
	see := "; see " + cmd.CommandPath() + " --help"
	switch {
	case f.job != "" && f.store == "":
		return "", nil, usagef("--job: the store is not known: name it with --checkpoint-dir%s", see)
	case f.job != "" && len(f.set) > 0:
		return "", nil, usagef("--set changes a job file, and --job takes the place of one%s", see)
	case f.job != "":
		return "", args, nil
	case len(args) == 0:
		return "", nil, usagef("expected a job file, or --job and --checkpoint-dir%s", see)
	}
	return args[0], args[1:], nil
}

// jobStore is the store of one job.
type jobStore struct {
	*engine.BucketStore
	job, place string
}

// open opens the store of a job file, or the one that flags name.
func (f *storeFlags) open(ctx context.Context, file string) (*jobStore, error) {
	s := &jobStore{job: f.job, place: f.store}
	if file != "" {
		parsed, err := job.Load(file, f.set)
		if err != nil {
			return nil, usage(err)
		}
		s.job = parsed.Job
		if s.place == "" {
			s.place = parsed.StoreURL()
		}
	}
	if strings.HasPrefix(s.place, "mem:") {
		return nil, usagef("checkpoint store %s is in the memory of the process that runs the job: nobody else can look into it", s.place)
	}
	var err error
	if s.BucketStore, err = engine.OpenStore(ctx, s.place); err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// withStore gives do the store that was named, and the arguments behind the job file.
func (f *storeFlags) withStore(cmd *cobra.Command, args []string, do func(context.Context, *jobStore, []string) error) (err error) {
	file, rest, err := f.cut(cmd, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := f.open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(ctx, s, rest)
}

func (s *jobStore) read(ctx context.Context, id int64) (*engine.Checkpoint, int, error) {
	return engine.ReadCheckpoint(ctx, s, s.job, id)
}

// newest is the checkpoint that a run would look at first: the newest that is whole. nil: there is none.
func (s *jobStore) newest(ctx context.Context) (c *engine.Checkpoint, bytes int, err error) {
	ids, err := s.List(ctx, s.job)
	for i := len(ids) - 1; i >= 0 && err == nil; i-- {
		c, bytes, err = s.read(ctx, ids[i])
		if err == nil {
			return c, bytes, nil
		}
		if errors.Is(err, engine.ErrDamaged) || errors.Is(err, engine.ErrNoCheckpoint) {
			err = nil
		}
	}
	return nil, 0, err
}

// next says what a run of the job would begin with.
func (s *jobStore) next(c *engine.Checkpoint) string {
	switch {
	case c == nil:
		return "a run starts at the beginning"
	case c.Finished:
		return fmt.Sprintf("the job had finished at checkpoint %d: a run starts anew", c.ID)
	}
	return fmt.Sprintf("a run goes on from checkpoint %d", c.ID)
}

func checkpointNumber(arg string) (int64, error) {
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("checkpoint %q: expected the number of one, as checkpoints list prints it", arg)
	}
	return id, nil
}

func (a *app) checkpointsDelete() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "delete JOB.yaml CHECKPOINT...",
		Short: "Delete checkpoints",
		Long: `delete takes checkpoints out of the store, savepoints too. A run deletes all but its newest itself, and leaves savepoints.

Without its newest checkpoint a job goes on from an older one and writes again what came between, which is there twice then. Delete
no checkpoint of a job that is running.`,
		Example: `  millrace checkpoints delete job.yaml 12
  millrace checkpoints delete --job orders --checkpoint-dir gs://my-bucket/checkpoints 12 15`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withStore(cmd, args, func(ctx context.Context, s *jobStore, args []string) error {
				if len(args) == 0 {
					return usagef("delete takes the numbers of checkpoints; see %s --help", cmd.CommandPath())
				}
				return a.deleteCheckpoints(ctx, s, args)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// deleteCheckpoints looks at all of them before it deletes the first.
func (a *app) deleteCheckpoints(ctx context.Context, s *jobStore, args []string) error {
	there, err := s.List(ctx, s.job)
	if err != nil {
		return err
	}
	stored := map[int64]bool{}
	for _, id := range there {
		stored[id] = true
	}
	ids := make([]int64, len(args))
	for i, arg := range args {
		if ids[i], err = checkpointNumber(arg); err != nil {
			return err
		}
		if !stored[ids[i]] {
			return usagef("job %s has no checkpoint %d in %s: nothing was deleted", oneLine(s.job), ids[i], oneLine(s.place))
		}
	}
	for _, id := range ids {
		if err := s.Delete(ctx, s.job, id); err != nil {
			return err
		}
	}
	c, _, err := s.newest(ctx)
	if err != nil {
		return err
	}
	a.say("%s: deleted %s; %s\n", oneLine(s.job), pluralText(len(ids), "checkpoint"), s.next(c))
	return nil
}
