// Command millrace moves streams of records into and out of BigQuery.
//
// Run "millrace help" for the commands, and "millrace help COMMAND" for each with examples.
package main

import (
	"context"
	"io"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command with its surroundings as arguments, so that tests run it as a user does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, console: newConsole(stderr)}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	a.logIn(a.logFormat) // flags may have been wrong before this one was looked at
	return a.console.exit(err)
}
