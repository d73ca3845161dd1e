package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/mask"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// tagged is an answer with an etag of its own.
type tagged struct {
	etag string
	body any
}

// noContent is the answer of a method that answers nothing.
type noContent struct{}

// answer writes a method's outcome and tells its HTTP status.
func (c *call) answer(v any, err error) int {
	if err != nil {
		return writeError(c.w, err)
	}
	switch t := v.(type) {
	case partial:
		return t.answer(c.w)
	case noContent:
		c.w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	case tagged:
		c.w.Header().Set("ETag", t.etag)
		if c.r.Method == http.MethodGet && matches(c.r.Header.Get("If-None-Match"), t.etag) {
			c.w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
		v = t.body
	}
	body, err := json.Marshal(v)
	if err == nil {
		body, err = c.shape(body)
	}
	if err != nil {
		return writeError(c.w, err)
	}
	c.write(body)
	return http.StatusOK
}

func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag != "" && (tag == "*" || strings.Trim(tag, `"`) == etag) {
			return true
		}
	}
	return false
}

// shape applies the fields parameter and pretty printing, which is off unless asked for.
func (c *call) shape(body []byte) ([]byte, error) {
	if fields := c.param("fields"); fields != "" {
		wanted, err := mask.Parse(fields)
		if err != nil {
			return nil, err
		}
		if body, err = wanted.Apply(body); err != nil {
			return nil, err
		}
	}
	if pretty, _ := c.flag("prettyPrint"); !pretty {
		return body, nil
	}
	var out bytes.Buffer
	err := json.Indent(&out, body, "", "  ")
	return out.Bytes(), err
}

// minGzipBytes is the length from which an answer is worth compressing.
const minGzipBytes = 1 << 10

func (c *call) write(body []byte) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	h.Set("Vary", "Accept-Encoding")
	if len(body) >= minGzipBytes && strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, gzip.BestSpeed) // a level that exists
		w.Write(body)
		w.Close()
		body = z.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.Write(body) // a client that has gone away is its own problem
}

// statuses are the canonical codes in an error body.
var statuses = map[int]string{
	400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ALREADY_EXISTS", 412: "FAILED_PRECONDITION",
	499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
}

// code is the HTTP status of a refusal; reasons that only jobs have are added here.
func code(e *refusal.Error) int {
	switch e.Reason {
	case stopped:
		return 499
	case bytesBilledLimit:
		return 400
	}
	return e.Code()
}

// refusalOf makes a refusal of any error: a fault of a statement is invalidQuery, whatever else is not a refusal is ours.
func refusalOf(err error) *refusal.Error {
	if e := refusal.Of(err); e != nil {
		return e
	}
	if q, ok := errors.AsType[*query.Error](err); ok {
		return &refusal.Error{Reason: refusal.InvalidQuery, Message: q.Error(), Location: "query"}
	}
	return &refusal.Error{Reason: refusal.InternalError, Message: err.Error()}
}

func writeError(w http.ResponseWriter, err error) int {
	e := refusalOf(err)
	item := map[string]any{"message": e.Message, "domain": "global", "reason": e.Reason}
	if e.Location != "" {
		item["location"] = e.Location
		item["locationType"] = locationType(e.Location)
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"code": code(e), "message": e.Message, "errors": []any{item}, "status": statuses[code(e)],
	}})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code(e))
	w.Write(body)
	return code(e)
}

func locationType(location string) string {
	switch location {
	case "query":
		return "other"
	case "If-Match":
		return "header"
	}
	return "parameter"
}
