package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitFile waits until a file is there and has something in it.
func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s did not appear", args[0])
		}
	}
}

// setFrom sets an environment variable to a field of a JSON file: setfrom FILE FIELD VARIABLE.
func setFrom(ts *testscript.TestScript, _ bool, args []string) {
	var fields map[string]string
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &fields); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	ts.Setenv(args[2], fields[args[1]])
}

// barrier waits until a local service holds a call at a barrier: barrier ADDRESS.
func barrier(ts *testscript.TestScript, _ bool, args []string) {
	answer, err := http.Get("http://" + args[0] + "/local/v1/barriers/next?timeout=60s")
	ts.Check(err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		ts.Fatalf("no call came to a barrier: %s", answer.Status)
	}
}

// pageCommands runs what the blocks of shell on a page type, line by line: pagecommands PAGE.
func pageCommands(ts *testscript.TestScript, _ bool, args []string) {
	text, err := os.ReadFile(args[0])
	ts.Check(err)
	inside, ran := false, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			ran++
			if err := ts.Exec("sh", "-e", "-c", line); err != nil {
				ts.Fatalf("%s: %v", line, err)
			}
		}
	}
	if ran == 0 {
		ts.Fatalf("%s types nothing", args[0])
	}
}
