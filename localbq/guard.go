package localbq

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard keeps web pages out of what answers over HTTP. No credential is checked, so whatever a browser on the machine may send
// would be carried out: a page can post to the loopback interface, and a page whose name its owner points at the loopback
// interface can read the answers too. Browsers tell where a request comes from, in Origin and Sec-Fetch-Site, and by which
// name they found the server, in Host; programs send neither of the first two.
type guard struct {
	hosts []string // names beside those that nobody can point elsewhere
	next  http.Handler
}

func (i *Instance) guard(h http.Handler) http.Handler { return &guard{i.config.Hosts, h} }

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.named(r.Host):
		forbid(w, fmt.Sprintf("local BigQuery does not answer to the host name %q: expected an IP address, localhost, a name without dots, or one of localbq.Config.Hosts (millrace local --allow-host)", r.Host))
	case foreign(r):
		forbid(w, "local BigQuery checks no credentials and does not answer web pages of other origins")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// named reports whether a Host header is one that a page of somebody else cannot have: an address, which is not looked up at
// all; localhost and what is below it; a name without dots, such as another container's, which is no name of the internet; or
// one of the configuration. None is of a program, for browsers always send one.
func (g *guard) named(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(g.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// foreign reports whether a browser says that the request is of a page that another server has sent.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) || u.Host == "" {
			return true
		}
	}
	return false
}

// forbid answers as both faces word their errors.
func forbid(w http.ResponseWriter, message string) {
	item := map[string]string{"message": message, "domain": "global", "reason": "forbidden"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ // the client is gone if this fails
		"code": http.StatusForbidden, "message": message, "errors": []any{item}, "status": "PERMISSION_DENIED",
	}})
}
