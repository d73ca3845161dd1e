package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// call is one request being answered.
type call struct {
	method    string // tables.insert
	w         http.ResponseWriter
	r         *http.Request
	principal string
}

// maxBodyBytes bounds a request. The largest one allowed is a query of 1 MB with parameters.
const maxBodyBytes = 20 << 20

// Anonymous is the caller of a request without a token of ours.
const Anonymous = "anonymous@local"

// Principal is who a request or a call comes from: the p of the token "local:p".
func Principal(authorization string) string {
	if p, ok := strings.CutPrefix(authorization, "Bearer local:"); ok && p != "" {
		return p
	}
	return Anonymous
}

// serve makes an HTTP handler of a method.
func (s *Server) serve(method string, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{method: method, w: w, r: r, principal: Principal(r.Header.Get("Authorization"))}
		s.watch(c, handle)
	}
}

func (c *call) project() string { return c.r.PathValue("project") }

func (c *call) dataset() store.DatasetRef {
	return store.DatasetRef{Project: c.project(), Dataset: c.r.PathValue("dataset")}
}

func (c *call) table() store.TableRef { return c.dataset().Table(c.r.PathValue("table")) }

// body reads the request's JSON into v.
func (c *call) body(v any) error {
	raw, err := c.bytes()
	if err != nil {
		return err
	}
	if err := noNulls(raw); err != nil {
		return err
	}
	return decode(raw, v)
}

// bytes reads the request's JSON; an empty body is an empty object.
func (c *call) bytes() ([]byte, error) {
	var in io.Reader = c.r.Body
	if c.r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(c.r.Body)
		if err != nil {
			return nil, refusal.New(refusal.Invalid, "Request body is not gzip: %v", err)
		}
		in = z
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxBodyBytes+1))
	switch {
	case err != nil:
		return nil, refusal.New(refusal.Invalid, "Reading the request body: %v", err)
	case len(raw) > maxBodyBytes:
		return nil, refusal.New(refusal.Invalid, "Request payload size exceeds the limit: %d bytes.", maxBodyBytes)
	case len(raw) == 0:
		raw = []byte("{}")
	}
	return raw, nil
}

// noNulls refuses null as an element of an array, which no resource of the API has and every reader of one would stumble
// over.
func noNulls(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	var open []json.Delim
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the end, or a fault that decoding tells of
		}
		switch t := t.(type) {
		case nil:
			if n := len(open); n > 0 && open[n-1] == '[' {
				return refusal.New(refusal.Invalid, "Invalid JSON payload received. An array has null for an element at byte %d", d.InputOffset())
			}
		case json.Delim:
			if t == '[' || t == '{' {
				open = append(open, t)
			} else {
				open = open[:len(open)-1]
			}
		}
	}
}

// decode reads JSON, naming what is wrong with it.
func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return refusal.New(refusal.Invalid, "Invalid JSON payload received. %v", err)
	}
	return nil
}

// Query parameters.

func (c *call) param(name string) string { return c.r.URL.Query().Get(name) }

func (c *call) flag(name string) (bool, error) {
	text := c.param(name)
	if text == "" {
		return false, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalidParam(name, text, "true or false")
	}
	return v, nil
}

// number reads a parameter that is not negative; -1 where it is absent.
func (c *call) number(name string) (int64, error) {
	text := c.param(name)
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalidParam(name, text, "a number from 0")
	}
	return n, nil
}

func invalidParam(name, value, want string) error {
	return &refusal.Error{
		Reason: refusal.Invalid, Location: name,
		Message: fmt.Sprintf("Invalid value '%s' for parameter %s: expected %s", value, name, want),
	}
}

// unsupportedParams refuses parameters that would change the answer.
func (c *call) unsupportedParams(names ...string) error {
	for _, name := range names {
		if v := c.param(name); v != "" && v != "false" {
			return refusal.New(refusal.NotImplemented, "local BigQuery does not implement parameter %s of %s", name, c.method)
		}
	}
	return nil
}

// permit refuses what Deps.Denied denies.
func (s *Server) permit(c *call, permission, resource string, ref fmt.Stringer) error {
	if s.Denied == nil || !s.Denied(c.principal, permission, resource) {
		return nil
	}
	what := "Dataset"
	if strings.Contains(resource, "/tables/") {
		what = "Table"
	}
	return refusal.New(refusal.AccessDenied,
		"Access Denied: %s %s: Permission %s denied on %s %s (or it may not exist).", what, ref, permission, strings.ToLower(what), ref)
}

func (s *Server) permitDataset(c *call, permission string) error {
	ref := c.dataset()
	return s.permit(c, permission, "projects/"+ref.Project+"/datasets/"+ref.Dataset, ref)
}

func (s *Server) permitTable(c *call, permission string) error {
	if t := c.table(); !query.MayRead(c.principal, t.Project, t.Dataset) {
		return refusal.New(refusal.AccessDenied, "Access Denied: Table %s: Permission %s denied on table %s (or it may not exist).", t, permission, t)
	}
	return s.permit(c, permission, c.table().Path(), c.table())
}
