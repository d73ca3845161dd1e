package rest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/load"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// uploads are the resumable uploads by id. They are kept in memory and go with the process, whose clients begin anew.
type uploads struct {
	mu   sync.Mutex // guards byID
	byID map[string]*upload
}

// upload is one resumable upload.
type upload struct {
	project   string
	principal string
	object    map[string]json.RawMessage // the job

	mu   sync.Mutex // guards the fields below
	data []byte
	job  *job // once it is complete
}

// begin keeps a new upload, and gives it an id nobody can guess.
func (us *uploads) begin(u *upload) string {
	var b [16]byte
	rand.Read(b[:])
	id := hex.EncodeToString(b[:])
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.byID == nil {
		us.byID = map[string]*upload{}
	}
	us.byID[id] = u
	return id
}

func (us *uploads) find(id string) (*upload, error) {
	us.mu.Lock()
	defer us.mu.Unlock()
	if u := us.byID[id]; u != nil {
		return u, nil
	}
	return nil, refusal.New(refusal.NotFound, "Not found: upload %q. Begin it anew.", id)
}

// partial is the answer to a part of an upload that is not the last: 308, or what stands for it (BigQuery documentation,
// "Resumable uploads").
type partial struct {
	code    int
	headers map[string]string
}

func (p partial) answer(w http.ResponseWriter) int {
	for name, value := range p.headers {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(p.code)
	return p.code
}

// uploadJob is jobs.insert with a file, whichever way it comes.
func (s *Server) uploadJob(c *call) (any, error) {
	switch kind := c.param("uploadType"); kind {
	case "multipart":
		return s.multipartJob(c)
	case "resumable":
		if c.param("upload_id") != "" {
			return s.uploadPart(c)
		}
		return s.beginUpload(c)
	default:
		return nil, invalidParam("uploadType", kind, "multipart or resumable")
	}
}

// multipartJob takes job and file in one request.
func (s *Server) multipartJob(c *call) (any, error) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" || params["boundary"] == "" {
		return nil, refusal.New(refusal.Invalid, "Invalid Content-Type %q: expected multipart/related with a boundary", c.r.Header.Get("Content-Type"))
	}
	parts := multipart.NewReader(c.r.Body, params["boundary"])
	raw, err := nextPart(parts, maxBodyBytes)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if err := decode(raw, &object); err != nil {
		return nil, err
	}
	data, err := nextPart(parts, math.MaxInt64-1)
	if err != nil {
		return nil, err
	}
	j, err := s.loadUpload(c, object, data)
	if err != nil {
		return nil, err
	}
	return c.jobResource(j)
}

// nextPart reads a part of at most so many bytes.
func nextPart(r *multipart.Reader, most int64) ([]byte, error) {
	var raw []byte
	p, err := r.NextRawPart()
	if err == nil {
		raw, err = io.ReadAll(io.LimitReader(p, most+1))
	}
	switch {
	case err != nil:
		return nil, refusal.New(refusal.Invalid, "Malformed multipart body: %v", err)
	case int64(len(raw)) > most:
		return nil, refusal.New(refusal.Invalid, "Request payload size exceeds the limit: %d bytes.", most)
	}
	return raw, nil
}

// readUpload reads the job that comes with a file.
func readUpload(object map[string]json.RawMessage) (*loadConfig, *bqapi.JobReference, map[string]json.RawMessage, error) {
	if err := jobFields.check(object, "job"); err != nil {
		return nil, nil, nil, err
	}
	var body struct {
		Reference     *bqapi.JobReference        `json:"jobReference"`
		Configuration map[string]json.RawMessage `json:"configuration"`
	}
	if err := recast(object, &body); err != nil {
		return nil, nil, nil, err
	}
	if err := configurationFields.check(body.Configuration, "job.configuration"); err != nil {
		return nil, nil, nil, err
	}
	t, err := readTransfer(body.Configuration)
	if err != nil {
		return nil, nil, nil, err
	}
	l, ok := t.(*loadConfig)
	switch {
	case !ok:
		return nil, nil, nil, refusal.New(refusal.Invalid, "Only load jobs take a file")
	case len(l.SourceUris) > 0:
		return nil, nil, nil, refusal.New(refusal.Invalid, "A job that comes with a file cannot name sourceUris")
	}
	return l, body.Reference, body.Configuration, nil
}

// loadUpload makes the job of a file that is complete.
func (s *Server) loadUpload(c *call, object map[string]json.RawMessage, data []byte) (*job, error) {
	l, reference, configuration, err := readUpload(object)
	if err != nil {
		return nil, err
	}
	key, err := c.jobKey(reference)
	if err != nil {
		return nil, err
	}
	l.upload = &load.Source{URI: "the uploaded file", Size: int64(len(data)), Open: func() (load.File, error) {
		return memoryFile{bytes.NewReader(data)}, nil
	}}
	return s.submitTransfer(c, key, l, &keptJob{Configuration: configuration, Upload: true})
}

// memoryFile is a file in memory.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

// beginUpload begins a resumable upload. What is wrong with its job is said at once.
func (s *Server) beginUpload(c *call) (any, error) {
	var object map[string]json.RawMessage
	if err := c.body(&object); err != nil {
		return nil, err
	}
	_, reference, _, err := readUpload(object)
	if err == nil {
		_, err = c.jobKey(reference)
	}
	if err != nil {
		return nil, err
	}
	id := s.uploads.begin(&upload{project: c.project(), principal: c.principal, object: object})
	query := url.Values{"uploadType": {"resumable"}, "upload_id": {id}}
	location := "http://" + c.r.Host + "/upload/bigquery/v2/projects/" + url.PathEscape(c.project()) + "/jobs?" + query.Encode()
	return partial{http.StatusOK, map[string]string{"Location": location, "X-GUploader-UploadID": id}}, nil
}

var contentRange = regexp.MustCompile(`^bytes (?:\*|(\d{1,18})-(\d{1,18}))/(?:\*|(\d{1,18}))$`)

// span is where a part belongs; first is -1 in a question for what is there, total where it is not known yet.
type span struct{ first, last, total int64 }

func parseSpan(header string, length int64) (span, error) {
	if header == "" {
		return span{0, length - 1, length}, nil
	}
	m := contentRange.FindStringSubmatch(header)
	if m == nil {
		return span{}, refusal.New(refusal.Invalid, "Invalid Content-Range %q: expected bytes first-last/total, with * for what is not known", header)
	}
	out := [3]int64{-1, -1, -1}
	for i, digits := range m[1:] {
		if digits != "" {
			out[i], _ = strconv.ParseInt(digits, 10, 64) // as many digits as fit
		}
	}
	r := span{out[0], out[1], out[2]}
	if r.first >= 0 && r.last-r.first+1 != length {
		return r, refusal.New(refusal.Invalid, "Content-Range %q speaks of %d bytes, and the body has %d", header, r.last-r.first+1, length)
	}
	return r, nil
}

// chunkBytes divides the length of every part but the last (BigQuery documentation, "Resumable uploads").
const chunkBytes = 256 << 10

// uploadPart takes a part of an upload, or tells how far it has come.
func (s *Server) uploadPart(c *call) (any, error) {
	u, err := s.uploads.find(c.param("upload_id"))
	if err != nil {
		return nil, err
	}
	if u.project != c.project() || u.principal != c.principal {
		return nil, refusal.New(refusal.AccessDenied, "Access Denied: the upload belongs to somebody else")
	}
	body, err := io.ReadAll(c.r.Body)
	if err != nil {
		return nil, refusal.New(refusal.Invalid, "Reading the request body: %v", err)
	}
	r, err := parseSpan(c.r.Header.Get("Content-Range"), int64(len(body)))
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.job == nil {
		if err := u.add(r, body); err != nil {
			return nil, err
		}
		if r.total < 0 || int64(len(u.data)) < r.total {
			return u.progress(c), nil
		}
		if u.job, err = s.loadUpload(c, u.object, u.data); err != nil {
			return nil, err
		}
		u.data = nil
	}
	return c.jobResource(u.job)
}

// add takes bytes in. Those that are there already are passed over.
func (u *upload) add(r span, body []byte) error {
	have := int64(len(u.data))
	switch {
	case r.total >= 0 && (have > r.total || r.last >= r.total):
		return refusal.New(refusal.Invalid, "the upload is longer than its total of %d bytes", r.total)
	case r.first < 0:
		return nil
	case r.first > have:
		return refusal.New(refusal.Invalid, "Invalid request: the part begins at byte %d, and %d are there", r.first, have)
	case r.last < have:
		return nil
	}
	fresh := body[have-r.first:]
	if last := r.total >= 0 && r.last == r.total-1; !last && (have+int64(len(fresh)))%chunkBytes != 0 {
		return refusal.New(refusal.Invalid, "Invalid request: all parts but the last must be a multiple of %d bytes long", chunkBytes)
	}
	u.data = append(u.data, fresh...)
	return nil
}

func (u *upload) progress(c *call) partial {
	p := partial{http.StatusPermanentRedirect, map[string]string{}}
	if n := len(u.data); n > 0 {
		p.headers["Range"] = fmt.Sprintf("bytes=0-%d", n-1)
	}
	if c.r.Header.Get("X-GUploader-No-308") != "" {
		p.code = http.StatusOK
		p.headers["X-Http-Status-Code-Override"] = "308"
	}
	return p
}
