package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

// killedDir, in the environment, makes this test program the process that is killed, and killedWords is how many words it may say.
const (
	killedDir   = "MILLRACE_ENGINE_TEST_DIR"
	killedWords = "MILLRACE_ENGINE_TEST_WORDS"
)

var killedInput = streamtest.Ranges{Splits: 5, Rows: 60, Batch: 4, Pace: 200 * time.Microsecond}

// TestKilledProcess runs a job in processes that are killed at random instants, until one gets done. Its rows are in
// files, so that nothing of a process outlives it but what a disk keeps.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	kills := 0
	for !oneProcess(t, dir, kills) {
		kills++
	}
	want := []string{}
	for _, i := range killedInput.Items() {
		want = append(want, i.String())
	}
	got, err := visibleLines(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("after %d kills %d rows are visible, want %d:\n%v", kills, len(got), len(want), got)
	}
	if kills < 5 {
		t.Errorf("only %d processes were killed: too few to prove anything", kills)
	}
}

// oneProcess starts a process and kills it once it has said a random number of words, and not at all when enough were
// killed. It says no more than those, however late it is killed.
func oneProcess(t *testing.T, dir string, kills int) (done bool) {
	t.Helper()
	words := 0
	if kills < 12 {
		words = 1 + mathrand.IntN(60) // 300 rows have to be said, so at least five die
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killedDir+"="+dir, killedWords+"="+strconv.Itoa(words))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if words--; words == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed && exit.ExitCode() >= 0 {
		t.Fatalf("the process failed by itself: %v\n%s", err, &stderr)
	}
	return err == nil
}

// say says a word. Behind the last one of those that the process may say, it and whatever says the next one wait for the kill.
var say = func() func(string) {
	var mu sync.Mutex // guards left
	left, _ := strconv.Atoi(os.Getenv(killedWords))
	return func(word string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(word)
		if left--; left == 0 {
			_, _ = io.Copy(io.Discard, os.Stdin) // nothing comes
		}
	}
}()

// runKilled is the process that is killed. It says a word before and after everything that reaches the disk.
func runKilled(dir string) error {
	store, err := engine.OpenStore(context.Background(), "file://"+filepath.Join(dir, "checkpoints"))
	if err != nil {
		return err
	}
	_, err = engine.Run(context.Background(), engine.Job[item, item]{
		Name: "killed", Source: killedInput, Sink: fileSink{dir},
	}, engine.Options{Lanes: 2, From: engine.Latest, Restart: engine.Restart{Policy: engine.NoRestart},
		Checkpoint: engine.Checkpointing{Every: 2 * time.Millisecond, Store: faultyStore{store, func(ctx context.Context, job string, id int64, data []byte) error {
			say("put")
			defer say("put")
			return store.Put(ctx, job, id, data)
		}}}})
	return err
}

// fileSink appends rows to files, and makes the first so many lines of a file visible. Every writer has a file of its
// own, which it goes on with after a restore as long as nothing has been written behind its state.
type fileSink struct{ dir string }

func (s fileSink) CommitScope() stream.CommitScope { return stream.PerLane }

func (s fileSink) NewCommitter(context.Context, stream.CommitterContext) (stream.Committer, error) {
	return fileCommitter(s), nil
}

func (s fileSink) NewWriter(_ context.Context, wc stream.WriterContext) (stream.Writer[item], error) {
	w := &fileWriter{dir: s.dir, name: rand.Text() + ".rows"}
	for _, state := range wc.States {
		name, lines, err := parseMark(state.Data)
		if err != nil {
			return nil, err
		}
		if have, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil && bytes.Count(have, []byte("\n")) == lines && bytes.HasSuffix(have, []byte("\n")) {
			w.name, w.lines = name, lines
		}
	}
	file, err := os.OpenFile(filepath.Join(s.dir, w.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.file = file
	return w, err
}

type fileWriter struct {
	dir      string
	name     string
	file     *os.File
	lines    int
	prepared int
}

func (w *fileWriter) Write(_ context.Context, r *stream.Record[item]) error {
	w.lines++
	_, err := w.file.WriteString(r.Value.String() + "\n")
	say("row")
	return err
}

func (w *fileWriter) Flush(context.Context, bool) error { return w.file.Sync() }

func (w *fileWriter) Prepare(context.Context, int64) ([]stream.Committable, error) {
	if w.lines == w.prepared {
		return nil, nil
	}
	w.prepared = w.lines
	return []stream.Committable{{Key: w.name, Data: w.mark()}}, nil
}

func (w *fileWriter) Snapshot(context.Context, int64) ([]stream.State, error) {
	if w.lines == 0 {
		return nil, nil
	}
	return []stream.State{{Destination: "rows", Data: w.mark()}}, nil
}

func (w *fileWriter) mark() []byte { return []byte(w.name + " " + strconv.Itoa(w.lines)) }

func parseMark(data []byte) (name string, lines int, err error) {
	name, n, _ := strings.Cut(string(data), " ")
	lines, err = strconv.Atoi(n)
	return name, lines, err
}

func (w *fileWriter) Close() error { return w.file.Close() }

type fileCommitter struct{ dir string }

func (c fileCommitter) Commit(_ context.Context, cs []stream.Committable) error {
	for _, one := range cs {
		name, lines, err := parseMark(one.Data)
		if err != nil {
			return err
		}
		if have, err := visible(c.dir, name); err != nil || have >= lines {
			if err != nil {
				return err
			}
			continue
		}
		say("commit")
		temp := filepath.Join(c.dir, rand.Text()+".temp")
		if err := os.WriteFile(temp, []byte(strconv.Itoa(lines)), 0o600); err != nil {
			return err
		}
		if err := os.Rename(temp, filepath.Join(c.dir, name+".visible")); err != nil {
			return err
		}
		say("commit")
	}
	return nil
}

func (fileCommitter) Close() error { return nil }

// visible is how many lines of a file can be seen.
func visible(dir, name string) (int, error) {
	data, err := os.ReadFile(filepath.Join(dir, name+".visible"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}

func visibleLines(dir string) (all []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.rows"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		n, err := visible(dir, filepath.Base(file))
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(data), "\n")
		if n > len(lines)-1 {
			return nil, fmt.Errorf("%s has %d lines, of which %d are visible", file, len(lines)-1, n)
		}
		all = append(all, lines[:n]...)
	}
	return all, nil
}
