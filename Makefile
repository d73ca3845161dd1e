# Every task of the repository. `make help` lists them.
GO     ?= go
BIN    := bin/millrace
TOOL   := $(GO) tool -modfile=tools/go.mod
# The crash suite: kills at random instants, points of calls to kill at (0 is all of them), storms of faults, rows of the
# table whose reads are killed; a number for each job of it. `make crash` goes through everything, which takes hours; `make crashsample` is what CI runs.
INSTANTS ?= 500
POINTS   ?= 0
STORMS   ?= 5000
READROWS ?= 2000000
# How long a soak takes: `make soak SOAK=1h`.
SOAK     ?= 20s
# How long each fuzz test runs: `make fuzz FUZZTIME=10m`.
FUZZTIME ?= 1m

.PHONY: help build test lint race crash crashjobs crashcommand crashstorms crashplans crashsample soak clients bench fuzz cover docs ci

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the command, into bin/
	$(GO) build -o $(BIN) ./cmd/millrace

test: ## the test suite, as the README says it
	$(GO) test ./...

lint: ## formatting, vet, staticcheck, the module files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	$(GO) mod verify

# Packages under the race detector do not wait a second each before they end. Draws of property tests, of one goroutine nearly all, are a quarter
# of those that `make test` has, -short has tests of the example take a part of its tables or of the ways to write them, vet is lint's, and memory
# is collected less often: a fifth and more of the processor's time is saved by that. Programs are linked without what only debuggers need.
race: ## the test suite under the race detector
	GORACE="atexit_sleep_ms=0 $$GORACE" GOGC=$${GOGC:-300} RAPID_CHECKS=$${RAPID_CHECKS:-25} $(GO) test -race -short -vet=off -ldflags=-w ./...

crash: crashjobs crashcommand crashstorms crashplans ## jobs killed at every step of every call and at random instants, and started again; jobs in storms of faults; plans of ten million files

# Killed jobs wait, for disks, for retries and for one another, more than they work: four at a time, and beside them another part of the sample.
crashjobs:
	$(GO) test -count=1 -timeout 0 -parallel 4 -v -run '^TestKilled' ./internal/e2e -points $(POINTS) -instants $(INSTANTS)

crashcommand:
	$(GO) test -count=1 -timeout 0 -run '^TestKilled' ./cmd/millrace -points $(POINTS) -kills $(INSTANTS) -readrows $(READROWS)

crashstorms:
	$(GO) test -count=1 -timeout 0 -run '^TestStorms$$' ./bigquery -storms $(STORMS)

crashplans:
	$(GO) test -count=1 -run '^(TestManyFiles|TestGoldenPlans)$$' ./bigquery/internal/loadplan -files 10000000

crashsample: ## a sample of the crash suite
	$(MAKE) -j 2 --output-sync=target crash INSTANTS=4 POINTS=4 STORMS=300 READROWS=40000

soak: ## jobs of both methods while tables come and go and calls fail, for SOAK
	$(GO) test -count=1 -v -timeout 0 -run '^TestSoak$$' ./bigquery -soak $(SOAK)

clients: ## official clients of other languages, and Go's, against the local BigQuery
	cd clients && $(GO) vet ./... && $(GO) run .

bench: ## every benchmark, once
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Making an input smaller that is new and no failure takes up to a minute by default, and nothing is tried meanwhile.
fuzz: ## every fuzz test in turn, each for FUZZTIME
	@set -e; for dir in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u); do \
	  for f in $$(cat $$dir/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do \
	    echo "== $$dir $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x ./$$dir; done; done

docs: ## the pages that are drawn from the code
	$(GO) test ./internal/arch -rewrite

ci: test lint race crashsample soak clients ## what CI runs
