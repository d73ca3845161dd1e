package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/millrace-dev/millrace/engine"
)

// control is what can be done to a running job over HTTP, by those who have the token.
type control struct {
	handle *engine.Handle
	token  string // "" refuses everybody
}

// withToken asks for the token, in a header that no page of another origin can send.
func (c *control) withToken(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case c.token == "":
			answer(w, http.StatusForbidden, failure{"nobody may do this: start the job with --http-token-env"})
		case !bearer || !same(strings.TrimSpace(given), c.token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, failure{"expected the header Authorization: Bearer TOKEN"})
		default:
			do(w, r)
		}
	}
}

// same compares in a time that tells nothing.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// savepoint answers once the savepoint is stored.
func (c *control) savepoint(w http.ResponseWriter, r *http.Request) {
	id, err := c.handle.Savepoint(r.Context())
	switch {
	case errors.Is(err, engine.ErrEnded):
		answer(w, http.StatusConflict, failure{err.Error()})
	case err != nil:
		answer(w, http.StatusServiceUnavailable, failure{err.Error()})
	default:
		answer(w, http.StatusOK, map[string]int64{"checkpoint": id})
	}
}

// stop answers at once: the job stops after a last checkpoint.
func (c *control) stop(w http.ResponseWriter, _ *http.Request) {
	c.handle.Stop()
	answer(w, http.StatusAccepted, map[string]string{"state": engine.Stopping.String()})
}

type failure struct {
	Error string `json:"error"`
}

// answer writes JSON, in which nothing that comes from data is markup.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
}
