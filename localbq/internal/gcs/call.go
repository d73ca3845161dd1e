package gcs

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// handler answers one method.
type handler func(*call) (answer, error)

// call is one request being answered.
type call struct {
	method             string // objects.insert
	w                  http.ResponseWriter
	r                  *http.Request
	bucket, object     string
	toBucket, toObject string // of a rewrite
	xml                bool   // errors are XML
}

// maxJSONBytes bounds the JSON of a request. The largest there is is an object's custom metadata, which the service takes 8 KiB
// of.
const maxJSONBytes = 1 << 20

// body reads the request's JSON into v.
func (c *call) body(v any) error {
	in, err := c.content()
	if err != nil {
		return err
	}
	return readJSON(in, v)
}

// content is the request's body, unpacked where the client packed it for the way, as Java's does.
func (c *call) content() (io.Reader, error) {
	if c.r.Header.Get("Content-Encoding") != "gzip" {
		return c.r.Body, nil
	}
	z, err := gzip.NewReader(c.r.Body)
	if err != nil {
		return nil, refusal.New(refusal.Invalid, "Request body is not gzip: %v", err)
	}
	return &unpacked{in: z, left: maxUnpackedBytes}, nil
}

// maxUnpackedBytes bounds a body that was packed for the way: a thousandth of it may be all that was sent. Clients pack whole
// small objects; larger ones come in chunks, which are not packed.
const maxUnpackedBytes = 128 << 20

// unpacked is what of a packed body may be read.
type unpacked struct {
	in   io.Reader
	left int64
}

func (u *unpacked) Read(b []byte) (int, error) {
	n, err := u.in.Read(b)
	if u.left -= int64(n); u.left < 0 {
		return 0, refusal.New(refusal.Invalid, "The request body unpacks to more than %d bytes: send the object in a resumable upload.", int64(maxUnpackedBytes))
	}
	return n, err
}

func readJSON(in io.Reader, v any) error {
	raw, err := io.ReadAll(io.LimitReader(in, maxJSONBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", objects.ErrBroken, err)
	case len(raw) > maxJSONBytes:
		return refusal.New(refusal.Invalid, "Metadata part is too large.")
	case len(strings.TrimSpace(string(raw))) == 0:
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return &refusal.Error{Reason: "parseError", Status: http.StatusBadRequest, Message: fmt.Sprintf("Parse Error: %v", err)}
	}
	return nil
}

// Query parameters.

func (c *call) param(name string) string { return c.r.URL.Query().Get(name) }

// number reads a parameter; nil where it is absent.
func (c *call) number(name string) (*int64, error) {
	text := c.param(name)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, &refusal.Error{Reason: refusal.Invalid, Location: name, Message: fmt.Sprintf("Invalid value for %s: %q: expected a number from 0", name, text)}
	}
	return &n, nil
}

// generation is the generation asked for, 0 for the one that is there.
func (c *call) generation(name string) (int64, error) {
	n, err := c.number(name)
	if n == nil {
		return 0, err
	}
	if *n == 0 {
		return 0, &refusal.Error{Reason: refusal.Invalid, Location: name, Message: "Invalid value for " + name + ": 0 is no generation"}
	}
	return *n, nil
}

// target reads which generation of an object is meant, and on what conditions.
func (c *call) target() (generation int64, conditions objects.Conditions, err error) {
	if generation, err = c.generation("generation"); err == nil {
		conditions, err = c.conditions("if")
	}
	return generation, conditions, err
}

// conditions reads the preconditions with a name such as "if" or "ifSource" before it.
func (c *call) conditions(prefix string) (out objects.Conditions, err error) {
	for name, to := range map[string]**int64{
		"GenerationMatch": &out.Generation, "GenerationNotMatch": &out.NotGeneration,
		"MetagenerationMatch": &out.Metageneration, "MetagenerationNotMatch": &out.NotMetageneration,
	} {
		if *to, err = c.number(prefix + name); err != nil {
			return out, err
		}
	}
	if prefix == "if" {
		out.Also = c.tags()
	}
	return out, nil
}

// tagged are the methods that heed If-Match and If-None-Match.
var tagged = fields("buckets.get buckets.patch buckets.update buckets.delete objects.get objects.patch objects.update objects.delete gcs.download")

// everywhere are parameters that every method takes, and that change no result here.
var everywhere = fields("alt fields key quotaUser userIp prettyPrint oauth_token access_token callback userProject projection " +
	"predefinedAcl predefinedDefaultObjectAcl destinationPredefinedAcl $.xgafv upload_protocol provisionalUserProject")

const (
	ifMatches       = " ifGenerationMatch ifGenerationNotMatch ifMetagenerationMatch ifMetagenerationNotMatch"
	ifSourceMatches = " ifSourceGenerationMatch ifSourceGenerationNotMatch ifSourceMetagenerationMatch ifSourceMetagenerationNotMatch"
)

// parameters are those that a method reads.
var parameters = map[string]map[string]bool{
	"buckets.list":   fields("project prefix maxResults pageToken returnPartialSuccess"),
	"buckets.insert": fields("project"),
	"buckets.get":    fields("ifMetagenerationMatch ifMetagenerationNotMatch"),
	"buckets.delete": fields("ifMetagenerationMatch ifMetagenerationNotMatch"),
	"buckets.patch":  fields("ifMetagenerationMatch ifMetagenerationNotMatch"),
	"buckets.update": fields("ifMetagenerationMatch ifMetagenerationNotMatch"),
	"objects.list":   fields("prefix delimiter startOffset endOffset maxResults pageToken versions"),
	"objects.get":    fields("generation" + ifMatches),
	"gcs.download":   fields("generation" + ifMatches),
	"objects.delete": fields("generation" + ifMatches),
	"objects.patch":  fields("generation" + ifMatches),
	"objects.update": fields("generation" + ifMatches),
	"objects.copy":   fields("sourceGeneration" + ifMatches + ifSourceMatches),
	// Bytes are moved at once, so a bound on how many are has nothing to bound.
	"objects.rewrite":   fields("sourceGeneration maxBytesRewrittenPerCall" + ifMatches + ifSourceMatches),
	"objects.compose":   fields("ifGenerationMatch ifMetagenerationMatch"),
	"objects.insert":    fields("name uploadType contentEncoding" + ifMatches),
	"gcs.upload.start":  fields("name uploadType contentEncoding" + ifMatches),
	"gcs.upload.chunk":  fields("name uploadType upload_id contentEncoding" + ifMatches),
	"gcs.upload.status": fields("name uploadType upload_id contentEncoding" + ifMatches),
	"gcs.upload.cancel": fields("name uploadType upload_id contentEncoding" + ifMatches),
	"batch":             fields(""),
}

func fields(names string) map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(names) {
		out[name] = true
	}
	return out
}

// known refuses parameters and headers that would change the result and are not read. The official Go client sends many
// parameters with the value that says nothing.
func (c *call) known() error {
	for name := range c.r.URL.Query() {
		if value := c.param(name); value != "" && value != "false" && !everywhere[name] && !parameters[c.method][name] {
			return c.unsupported("parameter " + name)
		}
	}
	for name := range c.r.Header {
		if strings.HasPrefix(name, "X-Goog-Encryption-") || strings.HasPrefix(name, "X-Goog-Copy-Source-Encryption-") {
			return c.unsupported("header " + name)
		}
	}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if c.r.Header.Get(name) != "" && !tagged[c.method] {
			return c.unsupported("header " + name)
		}
	}
	return nil
}

func (c *call) unsupported(what string) error {
	return refusal.New(refusal.NotImplemented, "local Cloud Storage does not implement %s of %s", what, c.method)
}
