package gcs

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// Deps are what the face stands on.
type Deps struct {
	Objects *objects.Store
	// Watch, if not nil, is told of every call in each of its phases, and may hold it, refuse it or cut it off.
	Watch Watcher
}

// Server is the face. Safe for concurrent use.
type Server struct{ Deps }

// New makes a face.
func New(d Deps) *Server { return &Server{d} }

// The endpoints of the API, which differ in what a path behind them may do.
const (
	jsonPrefix     = "/storage/v1"
	downloadPrefix = "/download/storage/v1"
	batchPrefix    = "/batch"
)

var uploadPrefixes = []string{"/resumable/upload/storage/v1", "/upload/storage/v1"}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if method := r.Header.Get("X-HTTP-Method-Override"); method != "" && r.Method == http.MethodPost {
		r.Method = strings.ToUpper(method)
	}
	c := &call{w: w, r: r}
	h, err := s.route(c, r.URL.EscapedPath())
	if err != nil {
		c.method = "unknown"
		h = func(*call) (answer, error) { return nil, err }
	}
	s.watch(c, h)
}

// route finds what a path asks for and fills in what it names.
func (s *Server) route(c *call, path string) (handler, error) {
	if rest, ok := strings.CutPrefix(path, batchPrefix); ok && (rest == "" || strings.HasPrefix(rest, "/")) {
		return s.batchRoute(c)
	}
	for _, prefix := range uploadPrefixes {
		if rest, ok := strings.CutPrefix(path, prefix+"/"); ok {
			return s.uploadRoute(c, rest)
		}
	}
	if rest, ok := strings.CutPrefix(path, downloadPrefix+"/"); ok {
		return s.jsonRoute(c, rest)
	}
	rest, ok := strings.CutPrefix(path, jsonPrefix+"/")
	if !ok {
		rest = strings.TrimPrefix(path, "/")
	}
	// No bucket is named "b": names have at least three letters.
	if ok || rest == "b" || strings.HasPrefix(rest, "b/") {
		return s.jsonRoute(c, rest)
	}
	return s.xmlRoute(c, rest)
}

// unescape reads the parts of a path.
func unescape(parts ...string) ([]string, error) {
	out := make([]string, len(parts))
	for i, part := range parts {
		var err error
		if out[i], err = url.PathUnescape(part); err != nil {
			return nil, refusal.New(refusal.Invalid, "Invalid path: %v", err)
		}
	}
	return out, nil
}

// jsonRoute finds the method of the JSON API that a path is (Cloud Storage discovery document).
func (s *Server) jsonRoute(c *call, path string) (handler, error) {
	escaped := strings.Split(path, "/")
	parts, err := unescape(escaped...)
	if err != nil {
		return nil, err
	}
	n := len(parts)
	if parts[0] != "b" || n > 2 && parts[2] != "o" {
		return nil, c.unknown(parts)
	}
	if n > 1 {
		c.bucket = parts[1]
	}
	if n > 3 {
		c.object = parts[3]
	}
	switch {
	case n == 1:
		return c.pick(verbs{"GET": {"buckets.list", s.listBuckets}, "POST": {"buckets.insert", s.insertBucket}})
	case n == 2:
		return c.pick(verbs{"GET": {"buckets.get", s.getBucket}, "DELETE": {"buckets.delete", s.deleteBucket},
			"PATCH": {"buckets.patch", s.patchBucket}, "PUT": {"buckets.update", s.updateBucket}})
	case n == 3:
		return c.pick(verbs{"GET": {"objects.list", s.listObjects}})
	case n == 4 && c.param("alt") == "media":
		return c.pick(verbs{"GET": {"gcs.download", s.download}})
	case n == 4:
		return c.pick(verbs{"GET": {"objects.get", s.getObject}, "DELETE": {"objects.delete", s.deleteObject},
			"PATCH": {"objects.patch", s.patchObject}, "PUT": {"objects.update", s.updateObject}})
	case n == 5 && parts[4] == "compose":
		return c.pick(verbs{"POST": {"objects.compose", s.compose}})
	case n == 9 && (parts[4] == "rewriteTo" || parts[4] == "copyTo") && parts[5] == "b" && parts[7] == "o":
		if c.toBucket, c.toObject = parts[6], parts[8]; parts[4] == "copyTo" {
			return c.pick(verbs{"POST": {"objects.copy", s.copyObject}})
		}
		return c.pick(verbs{"POST": {"objects.rewrite", s.rewrite}})
	}
	return nil, c.unknown(parts)
}

// xmlRoute reads an object by /bucket/object. The object's name need not have its slashes escaped.
func (s *Server) xmlRoute(c *call, path string) (handler, error) {
	bucket, object, ok := strings.Cut(path, "/")
	parts, err := unescape(bucket, object)
	if err != nil {
		return nil, err
	}
	c.xml = true
	c.bucket, c.object = parts[0], parts[1]
	if !ok || object == "" {
		return nil, refusal.New(refusal.NotImplemented, "local Cloud Storage implements no %s %s: of the XML API it has GET and HEAD of objects only", c.r.Method, c.r.URL.Path)
	}
	return c.pick(verbs{"GET": {"gcs.download", s.download}, "HEAD": {"gcs.download", s.download}})
}

// verbs are the methods at a path, by HTTP verb.
type verbs map[string]struct {
	name   string
	handle handler
}

func (c *call) pick(v verbs) (handler, error) {
	m, ok := v[c.r.Method]
	if !ok {
		return nil, refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement %s %s", c.r.Method, c.r.URL.Path)
	}
	c.method = m.name
	if err := c.known(); err != nil {
		return func(*call) (answer, error) { return nil, err }, nil
	}
	return m.handle, nil
}

// unknown refuses a path: resources that Cloud Storage has by name, others as nothing.
func (c *call) unknown(parts []string) error {
	if parts[0] == "b" || parts[0] == "projects" || parts[0] == "channels" {
		return refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement %s %s", c.r.Method, c.r.URL.Path)
	}
	return refusal.New(refusal.NotFound, "Not Found")
}
