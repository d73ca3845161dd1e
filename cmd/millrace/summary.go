package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/deadletter"
	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/job"
)

// summary is what a run leaves to read: the tables, what became of every record, what was decided about the schemas,
// and what to type next.
func summary(p *job.Pipeline, r engine.Result, local localFlag) string {
	var b strings.Builder
	tableSummary(&b, p)
	t := r.Tally
	fmt.Fprintf(&b, "\n%s: %s in %s: read %s = written %s + dead-lettered %s + skipped %s\n", r.Job, r.Outcome, roundDuration(r.Duration),
		count(t.Read), count(t.Written), count(t.DeadLettered), count(t.Skipped))
	if t.DeadLettered > 0 {
		b.WriteString(deadLetterSummary(p, t.DeadLettered, local))
	}
	b.WriteString(changedTables(p))
	b.WriteString(choices(p.Inferred))
	b.WriteString(next(p, local))
	return harmless(b.String())
}

func tableSummary(b *strings.Builder, p *job.Pipeline) {
	var rows [][]string
	var n, bytes, created int64
	for _, t := range p.Tables() {
		made := "no"
		if t.Created {
			made = "yes"
			created++
		}
		rows = append(rows, []string{t.Destination.String(), count(t.Rows), size(t.Bytes), made})
		n, bytes = n+t.Rows, bytes+t.Bytes
	}
	if len(rows) != 1 {
		rows = append(rows, []string{fmt.Sprintf("%d tables", len(rows)), count(n), size(bytes), count(created)})
	}
	b.WriteString(columns([]string{"TABLE", "ROWS", "BYTES", "CREATED"}, rows, map[int]bool{1: true, 2: true}))
}

// changedTables tells what was changed about tables that existed.
func changedTables(p *job.Pipeline) string {
	var b strings.Builder
	for _, t := range p.Tables() {
		if len(t.Changes) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", t.Destination, oneLine(strings.Join(t.Changes, ", ")))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nTables that were changed, as schemaUpdate allows:\n" + b.String()
}

// deadLetterSummary says where dead letters are, and shows those that are in a file.
func deadLetterSummary(p *job.Pipeline, n int64, local localFlag) string {
	switch {
	case p.DeadLetters != "":
		return fmt.Sprintf("\nDead letters, in %s:\n%s", shortPath(p.DeadLetters), lastDeadLetters(p.DeadLetters, n))
	case p.DeadLetterTopic != "":
		return fmt.Sprintf("\nDead letters, published to %s: %s\n", p.DeadLetterTopic, count(n))
	case p.DeadLetterTable != "":
		reached := local.flag()
		if !local.on() {
			reached = reach(p.Connection())
		}
		return fmt.Sprintf("\nDead letters, in the table %s: %s\n  millrace dlq show --table %s%s\n", p.DeadLetterTable, count(n), shellWord(p.DeadLetterTable), reached)
	}
	return ""
}

// shownDeadLetters is how many are shown; the file has all of them.
const shownDeadLetters = 10

// lastDeadLetters shows the newest letters of a queue.
func lastDeadLetters(path string, n int64) string {
	names, err := filequeue.Files(path)
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	want := int(min(n, shownDeadLetters))
	var last []string
	for _, name := range slices.Backward(names) {
		var of []string
		for e, err := range filequeue.Read(name) {
			if err != nil {
				return "  " + err.Error() + "\n"
			}
			if e.Err != nil {
				continue
			}
			of = append(of, fmt.Sprintf("  %s: %s\n", oneLine(placeOf(&e.Letter)), oneLine(e.Letter.Reason)))
			if len(of) > want {
				of = of[1:]
			}
		}
		last = append(of, last...)
		if len(last) >= want {
			break
		}
	}
	last = last[max(0, len(last)-want):]
	if n > shownDeadLetters {
		last = append(last, fmt.Sprintf("  and %s before them\n", count(n-shownDeadLetters)))
	}
	return strings.Join(last, "")
}

// placeOf is where the record of a letter came from.
func placeOf(l *deadletter.Letter) string {
	if l.Line > 0 {
		return fmt.Sprintf("%s:%d", shortPath(l.File), l.Line)
	}
	return fmt.Sprintf("%s@%d", shortPath(l.File), l.Position)
}

// headings say what each kind of decision means for whoever reads the tables.
var headings = []struct {
	decision jsonrow.Decision
	text     string
}{
	{jsonrow.AsJSON, "JSON columns, since no other type holds all their values"},
	{jsonrow.Renamed, "Renamed, to names that every way of writing takes"},
	{jsonrow.SameName, "Renamed, since BigQuery tells names apart by more than case"},
	{jsonrow.AsDecimal, "NUMERIC columns, since FLOAT64 would round their numbers"},
	{jsonrow.AsTime, "TIMESTAMP columns: the instant is kept, the spelling is RFC 3339 in UTC (~ marks those that were spelt otherwise)"},
	{jsonrow.AsDate, "DATE columns"},
	{job.Added, "Columns without a value yet, since the job file names them"},
	{jsonrow.NoColumn, "No column, since there never was a value (schema.rest would keep them)"},
}

// choices lists every decision about a schema, those of the same kind together, siblings on one line, with the number of
// tables where it is more than one.
func choices(all []job.Inferred) string {
	byKind := map[jsonrow.Decision]map[string]int{}
	for _, t := range all {
		for _, c := range t.Choices {
			if byKind[c.Decision] == nil {
				byKind[c.Decision] = map[string]int{}
			}
			byKind[c.Decision][described(c)]++
		}
	}
	var b strings.Builder
	for _, h := range headings {
		if found := byKind[h.decision]; len(found) > 0 {
			fmt.Fprintf(&b, "\n%s (%d):\n%s", h.text, total(found), siblings(found))
		}
	}
	return b.String()
}

func described(c jsonrow.Choice) string {
	c.Path = oneLine(c.Path)
	switch c.Decision {
	case jsonrow.Renamed, jsonrow.SameName:
		return c.Path + " → " + c.Column[strings.LastIndexByte(c.Column, '.')+1:]
	case jsonrow.AsJSON:
		return c.Path + " (" + c.Why + ")"
	}
	if c.Respelt {
		return c.Path + "~"
	}
	return c.Path
}

func total(found map[string]int) (n int) {
	for _, k := range found {
		n += k
	}
	return n
}

// siblings writes paths under their parents: "payload.repository: created_at ×47, updated_at ×48".
func siblings(found map[string]int) string {
	groups := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		parent, leaf := splitPath(path)
		if n := found[path]; n > 1 {
			leaf += fmt.Sprintf(" ×%d", n)
		}
		groups[parent] = append(groups[parent], leaf)
	}
	var b strings.Builder
	for _, parent := range slices.Sorted(maps.Keys(groups)) {
		b.WriteString(wrap(cmp.Or(parent, "(top level)")+": ", groups[parent]))
	}
	return b.String()
}

// splitPath cuts at the last dot that is not within quotes or parentheses.
func splitPath(path string) (parent, leaf string) {
	head, _, _ := strings.Cut(path, " (")
	head, _, _ = strings.Cut(head, " →")
	quoted := false
	at := -1
	for i, c := range head {
		if c == '"' {
			quoted = !quoted
		}
		if c == '.' && !quoted {
			at = i
		}
	}
	if at < 0 {
		return "", path
	}
	return path[:at], path[at+1:]
}

// wrap writes a list behind its label in lines of about 110 characters.
func wrap(label string, items []string) string {
	const indent, width = "  ", 110
	var b strings.Builder
	line := indent + label
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if len(line)+1+len(item) > width && line != indent+label {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent + indent + indent
		}
		line += item + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// next is what one types after a run.
func next(p *job.Pipeline, local localFlag) string {
	tables := p.Tables()
	if len(tables) == 0 {
		return ""
	}
	most := slices.MaxFunc(tables, func(a, b tableReport) int { return cmp.Compare(a.Rows, b.Rows) })
	dst := most.Destination
	query, read := local.flag(), local.flag()
	if !local.on() {
		read = reach(p.Connection())
		query = " --project " + shellWord(dst.Project) + read
	}
	return fmt.Sprintf("\nNext:\n  millrace query 'SELECT COUNT(*) AS n FROM `%s`'%s\n  millrace read %s%s --format ndjson\n",
		dst, query, shellWord(dst.String()), read)
}

// reach is how to type what it takes to reach what a job file reaches.
func reach(c job.Connection) string {
	var b strings.Builder
	for _, f := range []struct{ name, value string }{
		{"rest-endpoint", c.RESTEndpoint}, {"grpc-endpoint", c.GRPCEndpoint}, {"key-file", c.KeyFile}, {"quota-project", c.QuotaProject},
	} {
		if f.value != "" {
			b.WriteString(" --" + f.name + " " + shellWord(withoutKeyFile(f.name, f.value)))
		}
	}
	return b.String()
}
