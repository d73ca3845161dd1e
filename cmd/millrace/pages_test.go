package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/plan"
	"github.com/millrace-dev/millrace/lineage"
	"github.com/millrace-dev/millrace/stream"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMetricsPage holds docs/reference/metrics.md to the inventories, both ways.
func TestMetricsPage(t *testing.T) {
	documented := map[string]string{} // name → meaning
	for _, m := range regexp.MustCompile("(?m)^\\| `(millrace[^`]+)` \\| (?:counter|gauge) \\| [^|]* \\| (.*) \\|$").FindAllStringSubmatch(page(t, "metrics.md"), -1) {
		documented[m[1]] = m[2]
	}
	known := map[string]bool{}
	for _, list := range [][]stream.Instrument{engine.Instruments(), bigquery.SinkInstruments(), bigquery.SourceInstruments(), deadletter.Instruments(), lineage.Instruments()} {
		for _, in := range list {
			known[in.Name] = true
			if documented[in.Name] != in.Help {
				t.Errorf("%s: the page says %q, the code %q", in.Name, documented[in.Name], in.Help)
			}
		}
	}
	for name := range documented {
		if !known[name] {
			t.Errorf("the page has %s, which nothing counts", name)
		}
	}
	if len(known) < 30 {
		t.Errorf("found %d metrics: the inventory is broken", len(known))
	}
}

// TestFileLoadsGuide holds what the guide shows of the calculator to what it prints.
func TestFileLoadsGuide(t *testing.T) {
	sizing, err := plan.Size(bigquery.FileLoadFlow{RowsPerSecond: 100_000, RowBytes: 150, Every: 3 * time.Minute, Destinations: 1, Lanes: 256}, job.FileLoads{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/guide/file-loads.md")
	if err != nil {
		t.Fatal(err)
	}
	const command = "```sh\nmillrace plan --rate 100000 --row-bytes 150 --every 3m --parallelism 256\n```\n"
	if !strings.Contains(string(text), command+"\n```\n"+sizingText(sizing)+"```\n") {
		t.Errorf("the guide does not show what the calculator prints:\n%s", sizingText(sizing))
	}
}

// TestCommandsPage holds docs/reference/commands.md to the commands and their flags, both ways.
func TestCommandsPage(t *testing.T) {
	sections := map[string]string{}
	for _, s := range strings.Split(page(t, "commands.md"), "\n## ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		sections[title] = body
	}
	root := (&app{console: newConsole(io.Discard)}).root()
	flagsOn(t, "Everywhere", sections["Everywhere"], root.PersistentFlags())
	delete(sections, "Everywhere")
	for _, cmd := range leaves(root) {
		body, ok := sections[cmd.CommandPath()]
		if !ok {
			t.Errorf("no section %q", cmd.CommandPath())
		}
		delete(sections, cmd.CommandPath())
		if cmd.Name() == "write" || cmd.Name() == "replay" { // is told what run has
			run, _, _ := root.Find([]string{"run"})
			run.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "set" && (f.Name != "from" || cmd.Name() == "write") {
					body += "\n| `--" + f.Name + "` |"
				}
			})
		}
		flagsOn(t, cmd.Name(), body, localFlags(cmd))
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s has no example or no description", cmd.Name())
		}
	}
	for title := range sections {
		t.Errorf("section %q is about no command", title)
	}
}

// leaves are the commands that do something.
func leaves(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() {
			all = append(all, leaves(c)...)
			continue
		}
		all = append(all, c)
	}
	return all
}

func localFlags(cmd *cobra.Command) *pflag.FlagSet { return cmd.LocalNonPersistentFlags() }

func flagsOn(t *testing.T, where, body string, flags *pflag.FlagSet) {
	t.Helper()
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)`").FindAllStringSubmatch(body, -1) {
		documented[m[1]] = true
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !documented[f.Name] && f.Name != "help" {
			t.Errorf("%s: --%s is not on the page", where, f.Name)
		}
		delete(documented, f.Name)
	})
	for name := range documented {
		t.Errorf("%s: the page has --%s, which is no flag", where, name)
	}
}
