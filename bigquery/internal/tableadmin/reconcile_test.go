package tableadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
)

var everything = table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}

// tableAnswer is a table as the service answers it. fields is the JSON of its columns.
func tableAnswer(etag, fields string) answer {
	return answer{code: 200, body: fmt.Sprintf(`{"etag":%q,"type":"TABLE","schema":{"fields":[%s]}}`, etag, fields)}
}

func named(names ...string) *table.Schema {
	s := &table.Schema{}
	for _, n := range names {
		s.Fields = append(s.Fields, table.Field{Name: n, Type: table.String})
	}
	return s
}

const columnA = `{"name":"a","type":"STRING"}`

func TestReconcile(t *testing.T) {
	t.Parallel()
	have := tableAnswer("e1", columnA)
	limited := answer{code: 403, reason: "rateLimitExceeded"}
	moved := answer{code: 412, reason: "conditionNotMet"}
	conflict := answer{code: 409, reason: "conflict"}
	view := answer{code: 200, body: `{"etag":"e1","type":"VIEW","schema":{"fields":[` + columnA + `]}}`}
	type result struct {
		outcome Outcome
		err     error  // to be found, when set
		text    string // of the error, when set
		calls   string // G and P
		sleeps  int
	}
	for name, c := range map[string]struct {
		script []answer
		want   *table.Schema
		allow  table.UnionOptions
		result result
	}{
		"SW-70_widened":                     {[]answer{have, ok}, named("a", "b"), everything, result{outcome: Updated, calls: "GP"}},
		"SW-71_covers already":              {[]answer{have}, named("A"), everything, result{outcome: Unchanged, calls: "G"}},
		"SW-72_two lost races":              {[]answer{have, moved, have, conflict, have, ok}, named("b"), everything, result{outcome: Updated, calls: "GPGPGP", sleeps: 2}},
		"SW-72_412 by its code alone":       {[]answer{have, {code: 412}, have, ok}, named("b"), everything, result{outcome: Updated, calls: "GPGP", sleeps: 1}},
		"SW-72_rate limited":                {[]answer{have, limited, have, ok}, named("b"), everything, result{outcome: Updated, calls: "GPGP", sleeps: 1}},
		"SW-72_429":                         {[]answer{have, {code: 429}, have, ok}, named("b"), everything, result{outcome: Updated, calls: "GPGP", sleeps: 1}},
		"the other did the same":            {[]answer{have, moved, tableAnswer("e2", columnA+`,{"name":"b","type":"STRING"}`)}, named("b"), everything, result{outcome: Unchanged, calls: "GPG", sleeps: 1}},
		"SW-73_five lost races":             {[]answer{have, moved, have, moved, have, moved, have, moved, have, moved}, named("b"), everything, result{err: ErrUpdateRaceLost, text: "change the schema of p.d.t: others changed the table each time: 5 rounds", calls: "GPGPGPGPGP", sleeps: 4}},
		"503 and a reset connection repeat": {[]answer{{code: 503}, have, {}, {code: 502}, ok}, named("b"), everything, result{outcome: Updated, calls: "GGPPP", sleeps: 3}},
		"reading is rate limited":           {[]answer{limited, have}, named("a"), everything, result{outcome: Unchanged, calls: "GG", sleeps: 1}},
		"reading fails for good":            {[]answer{{code: 503}}, named("a"), everything, result{err: retry.ErrBudgetSpent, calls: "GGG", sleeps: 2}},
		"SW-75_absent":                      {[]answer{{code: 404, reason: "notFound"}}, named("a"), everything, result{err: ErrAbsent, calls: "G"}},
		"dropped before the patch":          {[]answer{have, {code: 404, reason: "notFound"}}, named("b"), everything, result{err: ErrAbsent, calls: "GP"}},
		"SW-76_new column, relaxation only": {[]answer{have}, named("a", "b"), table.UnionOptions{AllowFieldRelaxation: true}, result{err: table.ErrUnion, text: "column b: is new, and adding columns is not allowed", calls: "G"}},
		"SW-77_another type":                {[]answer{have}, &table.Schema{Fields: []table.Field{{Name: "A", Type: table.Int64}}}, everything, result{err: table.ErrUnion, text: "column a: is STRING, and INT64 elsewhere", calls: "G"}},
		"SW-77_a list":                      {[]answer{have}, &table.Schema{Fields: []table.Field{{Name: "a", Type: table.String, Mode: table.Repeated}}}, everything, result{err: table.ErrUnion, text: "column a: is NULLABLE, and REPEATED elsewhere", calls: "G"}},
		"SW-79_not relaxed unless allowed":  {[]answer{tableAnswer("e1", `{"name":"a","type":"STRING","mode":"REQUIRED"}`)}, named("a"), table.UnionOptions{AllowNewFields: true}, result{outcome: Unchanged, calls: "G"}},
		"never tightened":                   {[]answer{have}, &table.Schema{Fields: []table.Field{{Name: "a", Type: table.String, Mode: table.Required}}}, everything, result{outcome: Unchanged, calls: "G"}},
		"SW-84_patch denied":                {[]answer{have, {code: 403, reason: "accessDenied"}}, named("b"), everything, result{text: "change the schema of p.d.t: ", calls: "GP"}},
		"SW-84_patch over the day's quota":  {[]answer{have, {code: 403, reason: "quotaExceeded"}}, named("b"), everything, result{text: "change the schema of p.d.t: ", calls: "GP"}},
		"SW-84_a view":                      {[]answer{view}, named("b"), everything, result{err: ErrNotChangeable, text: "change the schema of p.d.t: its schema cannot be changed: it is a VIEW", calls: "G"}},
		"a type from the future":            {[]answer{tableAnswer("e1", `{"name":"s","type":"RECORD","fields":[{"name":"q","type":"QUATERNION"}]}`)}, named("b"), everything, result{text: "column s.q: unknown column type", calls: "G"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, a, sleeps := start(t, c.script...)
			outcome, err := a.Reconcile(t.Context(), dst, Wanted{Schema: c.want, Allow: c.allow})
			calls := ""
			for i, call := range s.calls {
				calls += map[string]string{"GET": "G", "PATCH": "P"}[strings.Fields(call)[0]]
				if patch := calls[i] == 'P'; (s.match[i] == "e1") != patch {
					t.Errorf("call %d has If-Match %q", i, s.match[i])
				}
			}
			if outcome != c.result.outcome || calls != c.result.calls || *sleeps != c.result.sleeps {
				t.Errorf("%v with %s and %d sleeps, want %v with %s and %d", outcome, calls, *sleeps, c.result.outcome, c.result.calls, c.result.sleeps)
			}
			if fails := c.result.err != nil || c.result.text != ""; fails != (err != nil) || c.result.err != nil && !errors.Is(err, c.result.err) {
				t.Errorf("got %v, want %v", err, c.result.err)
			}
			if err != nil && !strings.Contains(err.Error(), c.result.text) {
				t.Errorf("got %v, want %q", err, c.result.text)
			}
		})
	}
}

func TestReconcileCreates(t *testing.T) {
	t.Parallel()
	failure := errors.New("no dataset")
	for name, err := range map[string]error{"SW-75_absent": nil, "and cannot": failure} {
		t.Run(name, func(t *testing.T) {
			_, a, _ := start(t, answer{code: 404, reason: "notFound"})
			asked := 0
			outcome, got := a.Reconcile(t.Context(), dst, Wanted{Schema: named("a"), Allow: everything,
				Create: func(context.Context) error { asked++; return err }})
			if outcome != Created || asked != 1 || !errors.Is(got, err) {
				t.Errorf("%v, %v, %d creations", outcome, got, asked)
			}
		})
	}
	t.Run("not when it goes away while it is changed", func(t *testing.T) {
		_, a, _ := start(t, tableAnswer("e1", columnA), answer{code: 404, reason: "notFound"})
		_, err := a.Reconcile(t.Context(), dst, Wanted{Schema: named("b"), Allow: everything,
			Create: func(context.Context) error { t.Error("created"); return nil }})
		if !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
	})
}

// TestReconcileKeeps: the patch has the schema and nothing else, and of each column that was there everything.
func TestReconcileKeeps(t *testing.T) {
	t.Parallel()
	have := `{"name":"Id","type":"INTEGER","mode":"REQUIRED","description":"kept","policyTags":{"names":["projects/p/locations/l/taxonomies/1/policyTags/2"]}},
		{"name":"s","type":"RECORD","fields":[
			{"name":"m","type":"STRING","maxLength":"10","collation":"und:ci","dataPolicies":[{"name":"projects/p/locations/l/dataPolicies/x"}]},
			{"name":"n","type":"NUMERIC","precision":"9","scale":"2","roundingMode":"ROUND_HALF_EVEN","defaultValueExpression":"0"}]},
		{"name":"at","type":"TIMESTAMP","timestampPrecision":"12"},
		{"name":"r","type":"RANGE","rangeElementType":{"type":"DATE"}}`
	service, a, _ := start(t, tableAnswer("e1", have), ok)
	want := &table.Schema{Fields: []table.Field{
		{Name: "new", Type: table.Struct, Mode: table.Required, Fields: []table.Field{{Name: "x", Type: table.Int64, Mode: table.Required}, {Name: "l", Type: table.String, Mode: table.Repeated}}},
		{Name: "S", Type: table.Struct, Fields: []table.Field{{Name: "deep", Type: table.Date, Mode: table.Required}, {Name: "M", Type: table.String, Description: "not taken over"}}},
		{Name: "ID", Type: table.Int64},
	}}
	var changes []string
	if outcome, err := a.Reconcile(t.Context(), dst, Wanted{Schema: want, Allow: everything, Changed: func(s []string) { changes = s }}); err != nil || outcome != Updated {
		t.Fatal(outcome, err)
	}
	if want := []string{"column new added", "column s.deep added", "column Id made NULLABLE"}; !slices.Equal(slices.Sorted(slices.Values(changes)), slices.Sorted(slices.Values(want))) {
		t.Errorf("changes %q, want %q", changes, want)
	}
	wantSent := `{"schema":{"fields":[
		{"name":"Id","type":"INTEGER","mode":"NULLABLE","description":"kept","policyTags":{"names":["projects/p/locations/l/taxonomies/1/policyTags/2"]}},
		{"name":"s","type":"RECORD","fields":[
			{"name":"m","type":"STRING","maxLength":"10","collation":"und:ci","dataPolicies":[{"name":"projects/p/locations/l/dataPolicies/x"}]},
			{"name":"n","type":"NUMERIC","precision":"9","scale":"2","roundingMode":"ROUND_HALF_EVEN","defaultValueExpression":"0"},
			{"name":"deep","type":"DATE","mode":"NULLABLE"}]},
		{"name":"at","type":"TIMESTAMP","timestampPrecision":"12"},
		{"name":"r","type":"RANGE","rangeElementType":{"type":"DATE"}},
		{"name":"new","type":"RECORD","mode":"NULLABLE","fields":[{"name":"x","type":"INTEGER","mode":"NULLABLE"},{"name":"l","type":"STRING","mode":"REPEATED"}]}]}}`
	var sent, wanted any
	if err := errors.Join(json.Unmarshal([]byte(service.bodies[1]), &sent), json.Unmarshal([]byte(wantSent), &wanted)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wanted, sent); d != "" {
		t.Error("SW-78, SW-79:", d)
	}
}

func TestReconcileNamesAPartitionsTable(t *testing.T) {
	t.Parallel()
	s, a, _ := start(t, tableAnswer("e1", columnA), ok)
	d := dst
	d.Table = "t$20260101"
	if _, err := a.Reconcile(t.Context(), d, Wanted{Schema: named("b"), Allow: everything}); err != nil {
		t.Fatal(err)
	}
	for _, call := range s.calls {
		if !strings.HasSuffix(call, "/tables/t") {
			t.Error(call)
		}
	}
}

// TestWiden: the table is told as it is afterwards, with its layout.
func TestWiden(t *testing.T) {
	t.Parallel()
	have := answer{code: 200, body: `{"etag":"e1","type":"TABLE","timePartitioning":{"type":"DAY"},"schema":{"fields":[` + columnA + `]}}`}
	_, a, _ := start(t, have, ok)
	outcome, d, err := a.Widen(t.Context(), dst, Wanted{Schema: named("b"), Allow: everything})
	if err != nil || outcome != Updated || d.Options.Partition.Type != table.PartitionDay || !d.Schema.Equal(named("a", "b")) {
		t.Errorf("%v, %+v, %v", outcome, d, err)
	}
	t.Run("as many rounds as the caller wants", func(t *testing.T) {
		s, a, _ := start(t, have, answer{code: 412, reason: "conditionNotMet"}, have, answer{code: 412, reason: "conditionNotMet"})
		_, _, err := a.Widen(t.Context(), dst, Wanted{Schema: named("b"), Allow: everything, Race: retry.Schedule{Attempts: 2}})
		if !errors.Is(err, ErrUpdateRaceLost) || len(s.calls) != 4 {
			t.Errorf("%v after %v", err, s.calls)
		}
	})
}
