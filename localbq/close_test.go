package localbq_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/millrace-dev/millrace/localbq"
)

// A server does not look at the connection of a call whose body it has not read, so it does not notice that it is closed.
func TestCloseEndsCallsWhoseBodyNobodyReads(t *testing.T) {
	bq, err := localbq.Start(context.Background(), localbq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		c, err := net.Dial("tcp", bq.REST())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /local/v1/barriers/next?timeout=1000h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
	}
	if code := admin(t, bq, "GET", "faults", "", nil); code != 200 { // by then some of the others are in
		t.Errorf("faults: %d", code)
	}
	if err := bq.Close(); err != nil {
		t.Error(err)
	}
}

// Rows that are no appends have no digest that could be compared.
func TestLoadsOfEqualRowsAreNotAppliedTwice(t *testing.T) {
	bq, _, _ := oneTable(t, localbq.Config{})
	for _, id := range []string{"a", "b"} {
		if status, err := loadJob(t, bq, id).Wait(t.Context()); err != nil || status.Err() != nil {
			t.Fatal(status, err)
		}
	}
	if twice, err := bq.Audit().AppliedTwice("d.t"); err != nil || len(twice) != 0 {
		t.Errorf("applied twice: %v, %v", twice, err)
	}
}
