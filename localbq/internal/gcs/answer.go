package gcs

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/mask"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// answer is a method's outcome.
type answer interface {
	// send writes it and tells its HTTP status.
	send(*call) int
	// discard is called in place of send when the answer is withheld.
	discard()
}

// resource is an answer in JSON.
type resource struct{ body any }

func (resource) discard() {}

func (a resource) send(c *call) int {
	body, err := json.Marshal(a.body)
	if err == nil {
		body, err = c.shape(body)
	}
	if err != nil {
		return c.refuse(err)
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.Write(body) // a client that has gone away is its own problem
	return http.StatusOK
}

// shape applies the fields parameter and pretty printing, which is off unless asked for.
func (c *call) shape(body []byte) ([]byte, error) {
	if text := c.param("fields"); text != "" {
		wanted, err := mask.Parse(text)
		if err == nil {
			body, err = wanted.Apply(body)
		}
		if err != nil {
			return nil, err
		}
	}
	if pretty, _ := strconv.ParseBool(c.param("prettyPrint")); !pretty {
		return body, nil
	}
	var out bytes.Buffer
	err := json.Indent(&out, body, "", "  ")
	return out.Bytes(), err
}

// status is an answer without a body.
type status struct {
	code    int
	headers map[string]string
}

func (status) discard() {}

func (a status) send(c *call) int {
	for name, value := range a.headers {
		c.w.Header().Set(name, value)
	}
	if a.code != http.StatusNoContent && a.code != http.StatusNotModified {
		c.w.Header().Set("Content-Length", "0")
	}
	c.w.WriteHeader(a.code)
	return a.code
}

var noContent = status{code: http.StatusNoContent}

// send writes a method's outcome and tells its HTTP status.
func (c *call) send(a answer, err error) int {
	if err != nil {
		return c.refuse(err)
	}
	return a.send(c)
}

// notModified reports whether a read is refused because nothing has changed.
func (c *call) notModified(e *refusal.Error) bool {
	return e.Reason == refusal.ConditionNotMet && strings.HasSuffix(e.Location, "NotMatch") &&
		(c.r.Method == http.MethodGet || c.r.Method == http.MethodHead)
}

// refuse writes an error and tells its HTTP status. What is not a refusal is ours.
func (c *call) refuse(err error) int {
	e := refusal.Of(err)
	if e == nil {
		e = &refusal.Error{Reason: refusal.InternalError, Message: err.Error()}
	}
	code := e.Code()
	switch {
	case c.notModified(e):
		return status{code: http.StatusNotModified}.send(c)
	case c.xml:
		c.write(code, "application/xml; charset=UTF-8", xmlError(e))
	case c.method == "gcs.download":
		c.write(code, "text/html; charset=UTF-8", []byte(e.Message))
	default:
		c.write(code, "application/json; charset=UTF-8", jsonError(e))
	}
	return code
}

func (c *call) write(code int, contentType string, body []byte) {
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff") // a message may quote what a client said
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(code)
	c.w.Write(body)
}

func jsonError(e *refusal.Error) []byte {
	item := map[string]any{"message": e.Message, "domain": "global", "reason": e.Reason}
	switch {
	case e.Reason == refusal.ConditionNotMet:
		item["location"], item["locationType"] = "If-Match", "header"
	case e.Location != "":
		item["location"], item["locationType"] = e.Location, "parameter"
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"code": e.Code(), "message": e.Message, "errors": []any{item},
	}})
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return body
}

// xmlCodes are the codes of the XML API (Cloud Storage documentation, "HTTP status and error codes for XML").
var xmlCodes = map[int]string{
	400: "InvalidArgument", 404: "NoSuchKey", 412: "PreconditionFailed", 416: "InvalidRange", 501: "NotImplemented", 503: "ServiceUnavailable",
}

func xmlError(e *refusal.Error) []byte {
	code := xmlCodes[e.Code()]
	if code == "" {
		code = "InternalError"
	}
	if strings.Contains(e.Message, "bucket does not exist") {
		code = "NoSuchBucket"
	}
	body, err := xml.Marshal(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: e.Message})
	if err != nil {
		panic(err) // strings always marshal
	}
	return append([]byte(`<?xml version='1.0' encoding='UTF-8'?>`), body...)
}
