package rest

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	bqapi "google.golang.org/api/bigquery/v2"

	decoding "github.com/millrace-dev/millrace/localbq/internal/decode"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// tabledata.insertAll: rows as JSON objects, visible at once. Rows are checked all together; insertIds are remembered for a
// minute of the service's clock, on this server alone and until it ends. With a partition
// decorator, rows go into that partition.

var insertFields = fieldsOf("rows skipInvalidRows ignoreUnknownValues templateSuffix", "kind traceId")

// Limits of one request (BigQuery documentation, "Quotas and limits", "Streaming inserts").
const (
	maxInsertRows     = 50_000
	maxInsertIDLength = 128
)

// insertRequest is the body of tabledata.insertAll. The generated type reads numbers as doubles, which this does not.
type insertRequest struct {
	Rows []struct {
		ID   string         `json:"insertId"`
		JSON map[string]any `json:"json"`
	} `json:"rows"`
	SkipInvalid    bool   `json:"skipInvalidRows"`
	IgnoreUnknown  bool   `json:"ignoreUnknownValues"`
	TemplateSuffix string `json:"templateSuffix"`
}

func (s *Server) insertRows(c *call) (any, error) {
	body, err := c.insertRequest()
	if err != nil {
		return nil, err
	}
	to, err := c.target()
	if err != nil {
		return nil, err
	}
	if err := s.permitTable(c, "bigquery.tables.updateData"); err != nil {
		return nil, err
	}
	if to.partition != "" && body.TemplateSuffix != "" {
		return nil, refusal.New(refusal.Invalid, "Table decorators cannot be used with templateSuffix: %s", to)
	}
	t, err := s.insertTarget(c, body.TemplateSuffix)
	if err != nil {
		return nil, err
	}
	rows := &insertion{insertRequest: body, info: t.Info()}
	if rows.options.IgnoreUnknown = body.IgnoreUnknown; rows.info.View != nil {
		return nil, refusal.New(refusal.Invalid, "Cannot add rows to a table of type %s.", rows.info.Kind())
	}
	if rows.info.Schema == nil || len(rows.info.Schema.Fields) == 0 {
		return nil, refusal.New(refusal.Invalid, "The destination table has no schema.")
	}
	if n, columns := int64(len(body.Rows)), rows.info.Schema.Width(); n > schema.MostValues/columns {
		return nil, refusal.New(refusal.Invalid, "Too many values in the request: %d rows of %d columns, and the local BigQuery takes %d values at once.", n, columns, schema.MostValues)
	}
	if err := to.checkStream(rows.info.Definition, s.Clock.Now()); err != nil {
		return nil, err
	}
	rows.options.Now = s.Clock.Now()
	batch, answer, err := rows.decode(func(index int) bool {
		return s.inserted.claim(t.Instance(), body.Rows[index].ID, s.Clock.Now())
	})
	if err != nil || batch == nil {
		return answer, err
	}
	w := store.Rows{Info: rows.info, Batches: []arrow.RecordBatch{batch}}
	if err = to.place(nil, &w); err == nil {
		if t.Mode() != store.ModeStore {
			w.Batches, w.Ingested, w.Count = nil, nil, batch.NumRows()
		}
		_, err = t.Write(w)
	}
	if err != nil {
		for _, i := range rows.claimed {
			s.inserted.release(t.Instance(), body.Rows[i].ID)
		}
		return nil, err
	}
	return answer, nil
}

func (c *call) insertRequest() (*insertRequest, error) {
	raw, err := c.bytes()
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := decodeJSON(raw, &object); err != nil {
		return nil, err
	}
	if err := insertFields.check(object, "tableDataInsertAllRequest"); err != nil {
		return nil, err
	}
	var body insertRequest
	if err := decodeJSON(raw, &body); err != nil {
		return nil, err
	}
	switch n := len(body.Rows); {
	case n == 0:
		return nil, refusal.New(refusal.Invalid, "No rows present in the request.")
	case n > maxInsertRows:
		return nil, refusal.New(refusal.Invalid, "Too many rows present in the request, limit: %d row count: %d.", maxInsertRows, n)
	}
	for i, r := range body.Rows {
		if len(r.ID) > maxInsertIDLength {
			return nil, refusal.New(refusal.Invalid, "The insertId of row %d is longer than %d characters.", i, maxInsertIDLength)
		}
	}
	return &body, nil
}

// decodeJSON reads JSON with its numbers as they are written.
func decodeJSON(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return refusal.New(refusal.Invalid, "Invalid JSON payload received. %v", err)
	}
	return nil
}

// insertTarget is the table that rows go to: the one that the path names or, with a suffix, one named after it, which gets
// its schema when it is made.
func (s *Server) insertTarget(c *call, suffix string) (*store.Table, error) {
	base, err := s.Store.Table(c.table())
	if err != nil || suffix == "" {
		return base, err
	}
	ref := c.table()
	ref.Table += suffix
	t, err := s.Store.Table(ref)
	if !refusal.Is(err, refusal.NotFound) {
		return t, err
	}
	if err := s.permitDataset(c, "bigquery.tables.create"); err != nil {
		return nil, err
	}
	if t, err = s.Store.CreateTable(ref, &schema.Definition{Schema: base.Info().Schema.Clone()}); refusal.Is(err, refusal.Duplicate) {
		return s.Store.Table(ref)
	}
	return t, err
}

// insertion is the rows of one request on their way into a table.
type insertion struct {
	*insertRequest
	info    *store.Info
	options decoding.JSONOptions
	claimed []int // rows that go in
}

// decode checks the rows and answers those to write, nil where there are none, and what the client is told. claim reports
// whether a row has not been written before.
func (in *insertion) decode(claim func(index int) bool) (arrow.RecordBatch, *bqapi.TableDataInsertAllResponse, error) {
	answer := &bqapi.TableDataInsertAllResponse{Kind: "bigquery#tableDataInsertAllResponse"}
	bad, err := in.check()
	if err != nil {
		return nil, nil, err
	}
	rows, err := decoding.NewJSON(in.info.Schema, in.options)
	if err != nil {
		return nil, nil, err
	}
	for i, r := range in.Rows {
		switch {
		case bad[i] != nil:
			answer.InsertErrors = append(answer.InsertErrors, insertError(i, "invalid", bad[i]))
		case len(bad) > 0 && !in.SkipInvalid:
			answer.InsertErrors = append(answer.InsertErrors, insertError(i, string(stopped), &decoding.JSONError{}))
		case claim(i):
			in.claimed = append(in.claimed, i)
			if err := rows.Append(r.JSON); err != nil {
				return nil, nil, err
			}
		}
	}
	if len(in.claimed) == 0 {
		return nil, answer, nil
	}
	return rows.Take(), answer, nil
}

// check finds the rows that the table refuses.
func (in *insertion) check() (map[int]*decoding.JSONError, error) {
	trial, err := decoding.NewJSON(in.info.Schema, in.options)
	if err != nil {
		return nil, err
	}
	bad := map[int]*decoding.JSONError{}
	for i, r := range in.Rows {
		if err := trial.Append(r.JSON); err != nil {
			fault, ok := errors.AsType[*decoding.JSONError](err)
			if !ok {
				fault = &decoding.JSONError{Message: err.Error()}
			}
			bad[i] = fault
		}
		trial.Reset()
	}
	return bad, nil
}

func insertError(index int, reason string, e *decoding.JSONError) *bqapi.TableDataInsertAllResponseInsertErrors {
	return &bqapi.TableDataInsertAllResponseInsertErrors{
		Index: int64(index), ForceSendFields: []string{"Index"},
		Errors: []*bqapi.ErrorProto{{Reason: reason, Location: e.Field, Message: e.Message, ForceSendFields: []string{"Location", "Message", "DebugInfo"}}},
	}
}
