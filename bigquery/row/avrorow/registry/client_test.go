package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow/registry"
	"github.com/millrace-dev/millrace/bigquery/table"
)

const (
	secret = "s3cr3t-0123456789"
	user   = `{"type":"record","name":"a.User","fields":[{"name":"id","type":"int"},{"name":"home","type":"a.Place"}]}`
	place  = `{"type":"record","name":"a.Place","fields":[{"name":"city","type":"a.City"}]}`
	city   = `{"type":"record","name":"a.City","fields":[{"name":"name","type":"string"}]}`
	job    = `{"type":"record","name":"Job","fields":[{"name":"id","type":"long"},{"name":"home","type":{"type":"record","name":"P","fields":[
		{"name":"city","type":{"type":"record","name":"C","fields":[{"name":"name","type":"string"}]}}]}}]}`
)

// fake answers as the API is documented. Statuses go before answers.
type fake struct {
	*httptest.Server
	asked    atomic.Int32
	statuses chan int
	auth     func(*http.Request) bool
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{statuses: make(chan int, 100)}
	quote := func(s string) string { return fmt.Sprintf("%q", s) }
	answers := map[string]string{
		"/base/schemas/ids/7":                       `{"schema":` + quote(user) + `,"references":[{"name":"a.Place","subject":"place/value","version":3}]}`,
		"/base/schemas/ids/7/versions":              `[{"subject":"user-value","version":1}]`,
		"/base/schemas/ids/8":                       `{"schema":"\"string\""}`,
		"/base/schemas/ids/9":                       `{"schema":"message A {}","schemaType":"PROTOBUF"}`,
		"/base/schemas/ids/10":                      `not JSON`,
		"/base/subjects/place%2Fvalue/versions/3":   `{"subject":"place/value","id":5,"version":3,"schema":` + quote(place) + `,"references":[{"name":"a.City","subject":"city","version":1}]}`,
		"/base/subjects/city/versions/1":            `{"subject":"city","id":4,"version":1,"schema":` + quote(city) + `,"references":[{"name":"a.Place","subject":"place/value","version":3}]}`,
		"/base/subjects/user-value/versions/latest": `{"subject":"user-value","id":7,"version":1,"schema":` + quote(city) + `}`,
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		select {
		case status := <-f.statuses:
			http.Error(w, `{"error_code":50001,"message":"`+secret+`"}`, status)
			return
		default:
		}
		if f.auth != nil && !f.auth(r) {
			http.Error(w, `{"error_code":40101,"message":"`+r.Header.Get("Authorization")+`"}`, http.StatusUnauthorized)
			return
		}
		if body, ok := answers[r.URL.EscapedPath()]; ok {
			fmt.Fprint(w, body)
			return
		}
		http.Error(w, `{"error_code":40403,"message":"Schema not found"}`, http.StatusNotFound)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) client(t *testing.T, o registry.Options) *registry.Client {
	t.Helper()
	c, err := registry.New(f.URL+"/base/", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func message(id uint32, datum ...byte) []byte {
	return append([]byte{0, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}, datum...)
}

func serializer(t *testing.T, c avrorow.Schemas) *avrorow.MessageSerializer[[]byte] {
	t.Helper()
	s, err := avrorow.NewMessages(job, func(b []byte) []byte { return b }, c, avrorow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMessages(t *testing.T) {
	f := newFake(t)
	s := serializer(t, f.client(t, registry.Options{}))
	for range 3 {
		b, err := s.AppendRow(nil, table.Destination{}, message(7, 10, 4, 'P', 'o'))
		if got := fmt.Sprintf("%x", b); err != nil || got != "080512060a040a02506f" {
			t.Errorf("%s, %v", got, err)
		}
	}
	if n := f.asked.Load(); n != 4 {
		t.Errorf("asked %d times, want once for each schema and once for the subject", n)
	}
	buf, m := make([]byte, 0, 100), message(7, 10, 4, 'P', 'o')
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.AppendRow(buf, table.Destination{}, m); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
	for name, c := range map[string]struct {
		message []byte
		kind    row.Kind
		says    string
	}{
		"no framing":          {[]byte{1, 0, 0, 0, 7}, row.KindType, "framed"},
		"too short":           {[]byte{0, 0, 0}, row.KindType, "framed"},
		"nothing":             {nil, row.KindType, "framed"},
		"not in the registry": {message(404), row.KindResolve, "schema 404"},
		"no Avro":             {message(9), row.KindResolve, `schema 9: the registry has no such Avro schema: its type is "PROTOBUF"`},
		"no record":           {message(8), row.KindResolve, "id 8"},
		"damaged":             {message(7, 10, 4), row.KindType, "length"},
	} {
		_, err := s.AppendRow(nil, table.Destination{}, c.message)
		if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != c.kind || !strings.Contains(e.Msg, c.says) {
			t.Errorf("%s: %v, want %s and %q", name, err, c.kind, c.says)
		}
		if errors.Is(err, row.ErrUnavailable) {
			t.Errorf("%s: passes for the registry's fault", name)
		}
	}
	before := f.asked.Load()
	s.AppendRow(nil, table.Destination{}, message(404))
	if f.asked.Load() != before {
		t.Error("an id that is not there is asked for with every record")
	}
}

func TestSchemaThatDoesNotFitNamesItsSubject(t *testing.T) {
	s, err := avrorow.NewMessages(`{"type":"record","name":"Job","fields":[{"name":"id","type":"string"}]}`, func(b []byte) []byte { return b },
		newFake(t).client(t, registry.Options{}), avrorow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.AppendRow(nil, table.Destination{}, message(7))
	if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindResolve || e.Path != "id" || !strings.Contains(e.Msg, `id 7 of subject "user-value"`) {
		t.Errorf("%v, want D-SCHEMA with field, id and subject", err)
	}
}

func TestTriesAgain(t *testing.T) {
	f := newFake(t)
	f.statuses <- 503
	f.statuses <- 429
	if _, err := f.client(t, registry.Options{}).Schema(t.Context(), 7); err != nil {
		t.Errorf("%v, want a schema after two failures in passing", err)
	}
	for range 3 {
		f.statuses <- 500
	}
	s := serializer(t, f.client(t, registry.Options{Attempts: 2}))
	_, err := s.AppendRow(nil, table.Destination{}, message(7))
	if !errors.Is(err, row.ErrUnavailable) || !strings.Contains(err.Error(), "schema 7") || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("%v, want ErrUnavailable with id and status", err)
	}
	<-f.statuses
	if _, err := s.AppendRow(nil, table.Destination{}, message(7, 10, 4, 'P', 'o')); err != nil {
		t.Errorf("%v: the registry is back", err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	for range 100 {
		select {
		case f.statuses <- 503:
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.client(t, registry.Options{Attempts: 100}).Schema(ctx, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
}

func TestCredentials(t *testing.T) {
	f := newFake(t)
	f.auth = func(r *http.Request) bool {
		name, password, ok := r.BasicAuth()
		return ok && name == "key" && password == secret || r.Header.Get("Authorization") == "Bearer "+secret
	}
	with := strings.Replace(f.URL, "http://", "http://key:"+secret+"@", 1) + "/base"
	for name, o := range map[string]registry.Options{"basic": {Username: "key", Password: secret}, "bearer": {BearerToken: secret}} {
		if _, err := f.client(t, o).Schema(t.Context(), 7); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := registry.New(with, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Schema(t.Context(), 7); err != nil {
		t.Errorf("in the address: %v", err)
	}
	var faults []error
	f.auth = func(*http.Request) bool { return false }
	for _, o := range []registry.Options{{Username: "key", Password: secret}, {BearerToken: secret}} {
		_, err := f.client(t, o).Schema(t.Context(), 7)
		faults = append(faults, err)
	}
	f.Close()
	down, err := registry.New(with, registry.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = down.Schema(t.Context(), 7)
	faults = append(faults, err)
	for _, address := range []string{"http://key:" + secret + "@", "ftp://key:" + secret + "@host", "http://key:" + secret + "@ho st", "http://key:" + secret + "\x00@host"} {
		_, err := registry.New(address, registry.Options{})
		faults = append(faults, err)
	}
	_, err = registry.New(with, registry.Options{BearerToken: secret})
	faults = append(faults, err)
	_, err = registry.New(f.URL, registry.Options{BearerToken: secret, Username: "key"})
	faults = append(faults, err)
	_, err = registry.New(f.URL, registry.Options{BearerToken: secret + "\r\nX-Evil: 1"})
	faults = append(faults, err)
	for i, err := range faults {
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
			t.Errorf("fault %d: %v, want one without credentials", i, err)
		}
	}
}

func TestLatest(t *testing.T) {
	r, id, err := newFake(t).client(t, registry.Options{}).Latest(t.Context(), "user-value")
	if err != nil || id != 7 || r.Text != city || r.Subject != "user-value" {
		t.Errorf("%+v, %d, %v", r, id, err)
	}
	if _, _, err := newFake(t).client(t, registry.Options{}).Latest(t.Context(), "../../etc/passwd?x=#"); !errors.Is(err, avrorow.ErrNoSchema) {
		t.Errorf("%v, want ErrNoSchema", err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	f := newFake(t)
	if _, err := f.client(t, registry.Options{}).Schema(t.Context(), 10); err == nil || errors.Is(err, avrorow.ErrNoSchema) {
		t.Errorf("%v, want an error about the answer", err)
	}
}
