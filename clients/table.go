package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// table is which step passed with which client.
type table struct {
	clients []string
	results []map[string]string
	took    []time.Duration
}

func (t *table) add(client string, results map[string]string, took time.Duration) {
	t.clients, t.results, t.took = append(t.clients, client), append(t.results, results), append(t.took, took)
}

// print writes the table, then what failed, then how many passed and failed. It gives the number that failed.
func (t *table) print(to io.Writer) (failed int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "step")
	for _, c := range t.clients {
		fmt.Fprint(w, "\t", c)
	}
	fmt.Fprintln(w)
	passed, faults := 0, []string(nil)
	for _, step := range t.steps() {
		fmt.Fprint(w, step)
		for i, c := range t.clients {
			switch result := t.results[i][step]; result {
			case "ok":
				passed++
				fmt.Fprint(w, "\tok")
			case "":
				fmt.Fprint(w, "\t")
			default:
				faults = append(faults, fmt.Sprintf("%s: %s: %s", c, step, result))
				fmt.Fprint(w, "\tFAIL")
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "took")
	for _, d := range t.took {
		fmt.Fprint(w, "\t", d.Round(time.Second))
	}
	fmt.Fprintln(w)
	_ = w.Flush()
	for _, f := range faults {
		fmt.Fprintln(to, f)
	}
	fmt.Fprintf(to, "%d passed, %d failed\n", passed, len(faults))
	return len(faults)
}

// steps are the suite's, then any that only a program knows.
func (t *table) steps() (all []string) {
	for _, s := range steps {
		all = append(all, s.name)
	}
	for _, results := range t.results {
		for name := range results {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}
