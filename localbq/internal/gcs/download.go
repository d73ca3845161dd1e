package gcs

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// media is an object's bytes as an answer.
type media struct {
	reader      *objects.Reader
	first, size int64 // the range
	partial     bool
	unpack      bool // the object is compressed, and the client does not take it so
}

// download answers an object's bytes, or a range of them.
func (s *Server) download(c *call) (answer, error) {
	generation, err := c.generation("generation")
	if err != nil {
		return nil, err
	}
	conditions, err := c.conditions("if")
	if err == nil && c.xml {
		err = c.headerConditions(&conditions)
	}
	if err != nil {
		return nil, err
	}
	r, err := s.Objects.OpenIf(c.bucket, c.object, generation, conditions)
	if err != nil {
		return nil, err
	}
	a, err := c.media(r)
	if err != nil {
		r.Close()
		return nil, err
	}
	return a, nil
}

// headerConditions reads the preconditions as the XML API has them.
func (c *call) headerConditions(out *objects.Conditions) error {
	for name, to := range map[string]**int64{
		"X-Goog-If-Generation-Match": &out.Generation, "X-Goog-If-Metageneration-Match": &out.Metageneration,
	} {
		text := c.r.Header.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return refusal.New(refusal.Invalid, "Invalid %s %q: expected a number from 0", name, text)
		}
		*to = &n
	}
	return nil
}

// media decides what of an object is sent, and how.
func (c *call) media(r *objects.Reader) (*media, error) {
	o := r.Object()
	a := &media{reader: r, size: o.Size}
	if o.ContentEncoding == "gzip" && !strings.Contains(o.CacheControl, "no-transform") &&
		!strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
		a.unpack = true // the whole of it, whatever range is asked for
		return a, nil
	}
	first, size, ok := parseRange(c.r.Header.Get("Range"), o.Size)
	if !ok {
		return a, nil
	}
	if size <= 0 {
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", o.Size))
		return nil, &refusal.Error{Reason: "requestedRangeNotSatisfiable", Status: http.StatusRequestedRangeNotSatisfiable, Message: "Request range not satisfiable"}
	}
	a.first, a.size, a.partial = first, size, true
	return a, nil
}

var byteRange = regexp.MustCompile(`^bytes=(\d{0,18})-(\d{0,18})$`)

// parseRange reads a Range header against a size. A header that is not one range of bytes asks for everything; a range with
// nothing in it has size 0 or less.
func parseRange(text string, total int64) (first, size int64, ok bool) {
	m := byteRange.FindStringSubmatch(strings.ReplaceAll(text, " ", ""))
	if m == nil || m[1] == "" && m[2] == "" {
		return 0, 0, false
	}
	if m[1] == "" {
		n, _ := strconv.ParseInt(m[2], 10, 64) // digits that fit
		n = min(n, total)
		return total - n, n, true
	}
	first, _ = strconv.ParseInt(m[1], 10, 64)
	last := total - 1
	if m[2] != "" {
		end, _ := strconv.ParseInt(m[2], 10, 64)
		if end < first {
			return 0, 0, false
		}
		last = min(last, end)
	}
	return first, last - first + 1, true
}

func (a *media) discard() { a.reader.Close() }

func (a *media) send(c *call) int {
	defer a.reader.Close()
	o := a.reader.Object()
	mediaHeaders(c.w.Header(), &o)
	body := io.Reader(io.NewSectionReader(a.reader, a.first, a.size))
	code := http.StatusOK
	if a.unpack {
		body = a.unpacked(c, body)
	} else {
		c.w.Header().Set("Content-Length", strconv.FormatInt(a.size, 10))
	}
	if a.partial {
		code = http.StatusPartialContent
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", a.first, a.first+a.size-1, o.Size))
	}
	c.w.WriteHeader(code)
	if c.r.Method == http.MethodHead {
		return code
	}
	if _, err := io.Copy(c.w, body); err != nil && c.r.Context().Err() == nil {
		panic(http.ErrAbortHandler) // half an object must not look like a whole one
	}
	return code
}

// unpacked is what a compressed object holds. One that is not, in spite of what it says, is sent as it is.
func (a *media) unpacked(c *call, body io.Reader) io.Reader {
	packed := bufio.NewReader(body)
	if magic, _ := packed.Peek(2); string(magic) != "\x1f\x8b" {
		return packed
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return io.NewSectionReader(a.reader, 0, a.size)
	}
	h := c.w.Header()
	h.Del("Content-Encoding")
	h.Set("Warning", "214 UploadServer gunzipped")
	return z
}

// mediaHeaders say what is being read.
func mediaHeaders(h http.Header, o *objects.Object) {
	set := func(name, value string) {
		if value != "" && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) {
			h.Set(name, value)
		}
	}
	set("Content-Type", o.ContentType)
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/octet-stream")
	}
	set("Content-Encoding", o.ContentEncoding)
	set("Content-Disposition", o.ContentDisposition)
	set("Content-Language", o.ContentLanguage)
	set("Cache-Control", o.CacheControl)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Etag", strconv.Quote(objectTag(o)))
	h.Set("Last-Modified", o.Updated.UTC().Format(http.TimeFormat))
	h.Set("X-Goog-Generation", strconv.FormatInt(o.Generation, 10))
	h.Set("X-Goog-Metageneration", strconv.FormatInt(o.Metageneration, 10))
	h.Set("X-Goog-Storage-Class", o.StorageClass)
	h.Set("X-Goog-Stored-Content-Length", strconv.FormatInt(o.Size, 10))
	stored := "identity"
	if o.ContentEncoding == "gzip" {
		stored = "gzip"
	}
	h.Set("X-Goog-Stored-Content-Encoding", stored)
	h.Add("X-Goog-Hash", "crc32c="+objects.EncodeCRC32C(o.CRC32C))
	if o.MD5 != nil {
		h.Add("X-Goog-Hash", "md5="+objects.EncodeMD5(o.MD5))
	}
	if o.Components > 0 {
		h.Set("X-Goog-Component-Count", strconv.FormatInt(o.Components, 10))
	}
	for name, value := range o.Metadata {
		set("X-Goog-Meta-"+name, value)
	}
}
