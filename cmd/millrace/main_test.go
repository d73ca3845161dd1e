package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// raceOptions keep commands that run under the race detector from waiting a second before they exit.
var raceOptions = [2]string{"GORACE", "atexit_sleep_ms=0"}

// The test binary is the command too: scripts and the crash suite start it as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv(raceOptions[0], raceOptions[1])
	testscript.Main(m, map[string]func(){
		"millrace": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

func TestScripts(t *testing.T) {
	example, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv(raceOptions[0], raceOptions[1])
			e.Setenv("EXAMPLES", example+"/../../examples")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"waitfile":     waitFile,
			"setfrom":      setFrom,
			"protoset":     protoSet,
			"delimit":      delimit,
			"barrier":      barrier,
			"pagecommands": pageCommands,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
