package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
	"github.com/millrace-dev/millrace/deadletter/tablequeue"
)

var showFormats = formatNames("table", "ndjson")

type showFlags struct {
	format, out         string
	payload             bool
	limit               int64
	table, subscription string
	endpoint            string
	connection          connectionFlags
}

func (a *app) dlqShow() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show FILE... | --table TABLE | --subscription SUBSCRIPTION",
		Short: "Print dead letters",
		Long: `show prints dead letters: when and from where in the source, for which table, how long the record is, and what was wrong
with it. Records themselves are printed only with --payload.

Files that go on from one that is named, as dead-letters.000002.ndjson does from dead-letters.ndjson, are part of it. Letters of
a topic are read through a subscription to it, projects/PROJECT/subscriptions/SUBSCRIPTION, and given back: none is
acknowledged. The letters of a table come in no order.

ndjson prints what a file of dead letters holds: with --payload and -o it makes a file that dlq replay takes.`,
		Example: `  millrace dlq show dead-letters.ndjson
  millrace dlq show dead-letters.ndjson --format ndjson --payload | jq -r .record
  millrace dlq show --table my-project.ops.dead_letters --format ndjson --payload -o letters.ndjson
  millrace dlq show --subscription projects/my-project/subscriptions/dead-letters --limit 10`,
		Args: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, is := range []bool{len(args) > 0, f.table != "", f.subscription != ""} {
				if is {
					given++
				}
			}
			if given != 1 {
				return usagef("show takes files of dead letters, --table or --subscription, one of them; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(showFormats, f.format) {
				return usagef("--format %q: expected one of %s", f.format, strings.Join(showFormats, ", "))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.showFrom(ctx, &f, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "table", strings.Join(showFormats, ", "))
	fs.StringVarP(&f.out, "output", "o", "-", "`file` to write to, - is standard output")
	fs.BoolVar(&f.payload, "payload", false, "print the records too, or the rows where there are only those")
	fs.Int64Var(&f.limit, "limit", 0, "letters to print at most (default: all)")
	fs.StringVar(&f.table, "table", "", "`table` of dead letters, project.dataset.table")
	fs.StringVar(&f.subscription, "subscription", "", "`subscription` to a topic of dead letters")
	fs.StringVar(&f.endpoint, "pubsub-endpoint", "", "`host:port` of an emulator of Pub/Sub (default: $PUBSUB_EMULATOR_HOST)")
	f.connection.local.add(cmd)
	fs.StringVar(&f.connection.connection.RESTEndpoint, "rest-endpoint", "", "`host:port` of an emulator's REST API")
	fs.StringVar(&f.connection.connection.GRPCEndpoint, "grpc-endpoint", "", "`host:port` of an emulator's Storage API")
	fs.StringVar(&f.connection.connection.KeyFile, "key-file", "", "`file` with a service account's key (default: application default credentials)")
	return cmd
}

// showFrom prints the letters of what was named.
func (a *app) showFrom(ctx context.Context, f *showFlags, paths []string) (err error) {
	switch {
	case f.subscription != "":
		o := pubsubqueue.Options{Endpoint: f.endpoint, KeyFile: f.connection.connection.KeyFile}
		if err := errors.Join(pubsubqueue.CheckSubscription(f.subscription), o.Validate(anyTopic)); err != nil {
			return usagef("--subscription: %w", err)
		}
		return keyFileFlag(a.show(ctx, f, pubsubqueue.Peek(ctx, f.subscription, o)))
	case f.table != "":
		dst, err := table.ParseDestination(f.table)
		if err != nil {
			return usagef("--table: %w", err)
		}
		c, done, failed := f.connection.open(ctx, a)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, done()) }()
		return keyFileFlag(a.show(ctx, f, tablequeue.Letters(ctx, c, dst, f.limit)))
	}
	return a.show(ctx, f, lettersOf(paths))
}

// anyTopic stands for the topic, which a subscription knows.
const anyTopic = "projects/p/topics/any"

// letters are dead letters of any queue. An error may be about one of them, see oneOf; any other ends them.
type letters = iter.Seq2[deadletter.Letter, error]

// notALetter is the error about one line.
type notALetter struct{ error }

// oneOf is an error that is about one line or message only, nil if it is not.
func oneOf(err error) error {
	if line, ok := errors.AsType[notALetter](err); ok {
		return line
	}
	if message, ok := errors.AsType[*pubsubqueue.Foreign](err); ok {
		return message
	}
	return nil
}

// lettersOf reads files.
func lettersOf(paths []string) letters {
	return func(yield func(deadletter.Letter, error) bool) {
		for _, path := range paths {
			names, err := filequeue.Files(path)
			if err != nil {
				yield(deadletter.Letter{}, usage(err))
				return
			}
			for _, name := range names {
				for e, err := range filequeue.Read(name) {
					if err == nil && e.Err != nil {
						err = notALetter{fmt.Errorf("%s:%d: %w", name, e.Line, e.Err)}
					}
					if !yield(e.Letter, err) {
						return
					}
				}
			}
		}
	}
}

func (a *app) show(ctx context.Context, f *showFlags, all letters) error {
	var tell string
	err := a.output(f.out, func(w io.Writer) (err error) {
		p := printer{w: w, payload: f.payload, json: f.format == "ndjson"}
		tell, err = p.print(ctx, a, all, f.limit)
		return err
	})
	if err != nil {
		return err
	}
	a.say("%s\n", tell)
	return nil
}

// printer prints letters.
type printer struct {
	w             io.Writer
	payload, json bool

	rows  []shownLetter // of a table, not printed yet
	width [5]int
	begun bool
}

type shownLetter struct {
	cells   [5]string
	payload string
}

// print prints letters and says how many there were.
func (p *printer) print(ctx context.Context, a *app, all letters, limit int64) (tell string, err error) {
	var fold deadletter.Fold
	var n, again int64
	for l, err := range all {
		if one := oneOf(err); one != nil {
			a.say("millrace: %v\n", one)
			continue
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = p.letter(&l)
		}
		if err != nil {
			return "", err
		}
		if !fold.First(&l) {
			again++
		}
		if n++; limit > 0 && n >= limit {
			break
		}
	}
	tell = fmt.Sprintf("%s dead letters", count(n))
	if again > 0 {
		tell += fmt.Sprintf(", %s of them offered before, by a job that was started again", count(again))
	}
	return tell, p.table()
}

// tableRows is how many rows of a table are laid out together: letters come in any number.
const tableRows = 200

func (p *printer) letter(l *deadletter.Letter) error {
	switch {
	case p.json && p.payload:
		return p.line(l.AppendLine(nil))
	case p.json:
		return p.line(l.AppendSummary(nil))
	}
	p.rows = append(p.rows, shownAs(l, p.payload))
	if len(p.rows) < tableRows {
		return nil
	}
	return p.table()
}

func (p *printer) line(text []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = p.w.Write(text)
	return err
}

// shownAs makes a letter harmless to a terminal.
func shownAs(l *deadletter.Letter, withPayload bool) shownLetter {
	kind, payload := l.Payload()
	s := shownLetter{cells: [5]string{l.Time.UTC().Format(time.RFC3339), oneLine(l.Destination), oneLine(placeOf(l)), fmt.Sprint(len(payload)), oneLine(l.Reason)}}
	switch {
	case kind == deadletter.None:
		s.cells[3] = "-"
	case kind == deadletter.Row:
		s.cells[3] += " (row)"
	}
	if l.Replays > 0 {
		s.cells[4] = fmt.Sprintf("(replayed %d times) %s", l.Replays, s.cells[4])
	}
	if withPayload && kind != deadletter.None {
		s.payload = "  " + oneLine(strings.ToValidUTF8(string(payload), "·")) + "\n"
	}
	return s
}

// table prints the rows that are not printed yet.
func (p *printer) table() error {
	if p.json {
		return nil
	}
	header := [5]string{"TIME", "DESTINATION", "POSITION", "BYTES", "REASON"}
	for _, r := range append(p.rows, shownLetter{cells: header}) {
		for i, cell := range r.cells[:4] {
			p.width[i] = max(p.width[i], len([]rune(cell)))
		}
	}
	if !p.begun {
		p.rows = append([]shownLetter{{cells: header}}, p.rows...)
	}
	for _, r := range p.rows {
		line := ""
		for i, cell := range r.cells[:4] {
			pad := strings.Repeat(" ", p.width[i]-len([]rune(cell)))
			if i == 3 {
				cell, pad = pad, cell
			}
			line += cell + pad + "  "
		}
		if _, err := io.WriteString(p.w, line+r.cells[4]+"\n"+r.payload); err != nil {
			return err
		}
	}
	p.rows, p.begun = p.rows[:0], true
	return nil
}
