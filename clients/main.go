// Command clients proves that the official BigQuery clients of four languages work against `millrace local`, unmodified. It
// builds the command, starts the service, installs each language's clients from that language's own package manager, runs its
// program, and prints which step passed with which client.
//
//	go run . [-only go,python,node,java]
//
// A program prints a line for each step: its name, a tab, and "ok" or what is wrong. It learns where the service is from
// LOCAL_REST, LOCAL_GRPC and LOCAL_STORAGE, addresses without a scheme, and works in the project LOCAL_PROJECT and the dataset
// LOCAL_DATASET. A client that cannot be installed fails all of its steps.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// step is something that clients do with the service.
type step struct {
	name string
	only string // the client that does it, "" for every one
}

func (s step) of(client string) bool { return s.only == "" || s.only == client }

// steps are what clients do, in this order.
var steps = []step{
	{name: "create"},
	{name: "default stream"},
	{name: "committed stream"},
	{name: "buffered stream"},
	{name: "pending stream"},
	{name: "changes"},
	{name: "Arrow rows", only: "python"},
	{name: "JSON rows", only: "java"},
	{name: "read Avro"},
	{name: "read Arrow"},
	{name: "query"},
	{name: "every type"},
	{name: "list rows"},
	{name: "update"},
	{name: "insertAll"},
	{name: "DDL"},
	{name: "DML"},
	{name: "Cloud Storage"},
	{name: "load"},
	{name: "load a file"},
	{name: "copy"},
	{name: "extract"},
	{name: "discovery", only: "python"},
	{name: "delete"},
}

// client is a language with its official clients: how they are installed, and the program that uses them. Commands run in dir.
type client struct {
	name    string
	dir     string
	install [][]string
	run     []string
}

var clients = []client{
	{name: "go", dir: "go", install: [][]string{{"go", "build", "-o", "../../.clients/go", "."}}, run: []string{"../../.clients/go"}},
	{name: "python", dir: "python",
		install: [][]string{{"python3", "-m", "venv", "../../.clients/python"},
			{"../../.clients/python/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"}},
		run: []string{"../../.clients/python/bin/python", "orders.py"}},
	{name: "node", dir: "node", install: [][]string{{"npm", "ci", "--prefer-offline", "--no-progress"}}, run: []string{"node", "orders.mjs"}},
	{name: "java", dir: "java",
		install: [][]string{{"rm", "-rf", "../../.clients/java"},
			{"mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=../../.clients/java"},
			{"javac", "-cp", "../../.clients/java/*", "-d", "../../.clients/java/classes", "Orders.java", "JsonRows.java"}},
		run: []string{"java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", "../../.clients/java/*:../../.clients/java/classes", "Orders"}},
}

// installTime and runTime bound what one client takes.
const (
	installTime = 10 * time.Minute
	runTime     = 2 * time.Minute
)

func main() {
	only := flag.String("only", "", "`clients` to run, with commas between them (default: all)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := suite(ctx, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

// suite runs the clients and says how many steps failed.
func suite(ctx context.Context, only string) (failed int, err error) {
	chosen, err := choose(only)
	if err != nil {
		return 0, err
	}
	s, err := start(ctx)
	if err != nil {
		return 0, err
	}
	t := table{}
	for _, c := range chosen {
		began := time.Now()
		t.add(c.name, c.results(ctx, s), time.Since(began))
	}
	failed = t.print(os.Stdout)
	return failed, s.stop()
}

func choose(only string) (chosen []client, err error) {
	if only == "" {
		return clients, nil
	}
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no client %q", only, name)
		}
		chosen = append(chosen, clients[i])
	}
	return chosen, nil
}
