package main

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// webGuard keeps web pages away from a job. Whoever reaches the address may read, so a page that a browser on the machine
// has opened must not: neither by a request of its own, which browsers mark with Origin and Sec-Fetch-Site, nor under a
// name that its owner has pointed at this address, which browsers tell in Host.
type webGuard struct {
	hosts []string // names with dots that are ours
	next  http.Handler
}

func (g *webGuard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !g.ours(r.Host):
		answer(w, http.StatusForbidden, failure{"this is not a name of this server: use an address or localhost, or name it with --http-allow-host"})
	case ofPage(r):
		answer(w, http.StatusForbidden, failure{"web pages of other origins are not answered"})
	default:
		g.next.ServeHTTP(w, r)
	}
}

// ours reports whether nobody else can have a page under this name: an address is not looked up, names without dots are
// none of the internet, and what ends in localhost leads here.
func (g *webGuard) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(g.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// ofPage reports whether a browser says that a page of another origin has made the request.
func ofPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return true
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}
