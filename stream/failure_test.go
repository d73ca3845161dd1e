package stream

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func failed() *FailedRecord {
	return &FailedRecord{Connector: "world", Destination: "p.d.t", Reason: "field a is missing", Err: errors.New("no field a"),
		Row: []byte("secret"), Original: []byte("secret"), At: Location{Name: "in.ndjson", Line: 3}}
}

func TestFailJob(t *testing.T) {
	h, err := FailJob().NewHandler(t.Context(), HandlerContext{})
	if err != nil {
		t.Fatal(err)
	}
	f := failed()
	got := h.Handle(t.Context(), f)
	if !errors.Is(got, ErrRecordFailed) || !errors.Is(got, f.Err) {
		t.Errorf("Handle: %v", got)
	}
	if where, ok := errors.AsType[*PositionError](got); !ok || where.At != f.At {
		t.Errorf("the error does not say where: %v", got)
	}
	if want := "in.ndjson:3: record failed: world to p.d.t: no field a"; got.Error() != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
	f.Err = nil
	if got := h.Handle(t.Context(), f); !errors.Is(got, ErrRecordFailed) || !strings.Contains(got.Error(), "field a is missing") {
		t.Errorf("Handle without a cause: %v", got)
	}
	if err := errors.Join(h.Flush(t.Context()), h.Close()); err != nil {
		t.Error(err)
	}
}

func TestLogAndDrop(t *testing.T) {
	var log bytes.Buffer
	h, err := LogAndDrop().NewHandler(t.Context(), HandlerContext{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Handle(t.Context(), failed()), h.Flush(t.Context()), h.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"level=WARN", "connector=world", "destination=p.d.t", "at=in.ndjson:3", `reason="field a is missing"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, &log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log shows what the record holds: %s", &log)
	}
}

func TestTally(t *testing.T) {
	a := Tally{Read: 10, Written: 5, DeadLettered: 1, Skipped: 2, Failed: 1, Bytes: 100}
	if a.Lost() != 1 {
		t.Errorf("%d records are lost, want 1", a.Lost())
	}
	a.Add(Tally{Read: 2, Written: 3, Bytes: 7})
	if want := (Tally{Read: 12, Written: 8, DeadLettered: 1, Skipped: 2, Failed: 1, Bytes: 107}); a != want || a.Lost() != 0 {
		t.Errorf("the sum is %+v, want %+v", a, want)
	}
}

func TestLocation(t *testing.T) {
	byLine := locator(func(p Position) Location { return Location{Name: "in/" + p.Split, Line: p.Row / 10} })
	for want, p := range map[string]Position{"s@40": {Split: "s", Row: 40}, "in/s:4": {Split: "s", Row: 40, Locator: byLine}} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, k := range map[string]ChangeKind{"insert": Insert, "update-before": UpdateBefore, "update-after": UpdateAfter, "delete": Delete, "ChangeKind(9)": 9} {
		if got := k.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

type locator func(Position) Location

func (l locator) Locate(p Position) Location { return l(p) }
