package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/internal/retry"
)

// Options say how to reach the registry. The zero value is the default.
type Options struct {
	// Username and Password are for basic authentication, BearerToken is for the other kind; only one of them may be given. None is
	// no authentication, unless the URL has a user and a password.
	Username, Password string
	BearerToken        string

	// Timeout bounds one request, 10 s by default.
	Timeout time.Duration
	// Attempts is how often a request is made that fails in passing, 5 by default: after 0.1 s, 0.2 s and so on.
	Attempts int

	// Client makes the requests; nil is http.DefaultClient. Its own credentials are its own affair.
	Client *http.Client
}

// Client asks a registry. It implements avrorow.Schemas and may be used from many goroutines.
type Client struct {
	base    *url.URL
	options Options
	known   cache
}

var _ avrorow.Schemas = (*Client)(nil)

// New makes the Client of the registry at a URL, which may have a path. Nothing is asked yet.
func New(address string, o Options) (*Client, error) {
	// The address is in no error: it may hold a password.
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("schema registry: the address is no URL: expected http:// or https:// and a host")
	}
	if u.User != nil {
		if o.Username != "" || o.BearerToken != "" {
			return nil, errors.New("schema registry: the address has a user, and the options have credentials: give one of them")
		}
		o.Username = u.User.Username()
		o.Password, _ = u.User.Password()
		u.User = nil
	}
	if o.BearerToken != "" && (o.Username != "" || o.Password != "") {
		return nil, errors.New("schema registry: both a user and a bearer token are given: give one of them")
	}
	if strings.ContainsFunc(o.BearerToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("schema registry: the bearer token has characters that no header holds")
	}
	if o.Attempts < 0 || o.Timeout < 0 {
		return nil, errors.New("schema registry: Attempts and Timeout must not be negative")
	}
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	u.RawQuery, u.Fragment = "", ""
	return &Client{base: u, options: o}, nil
}

// answer is what the registry says of a schema. A schema without a type is Avro.
type answer struct {
	Subject    string      `json:"subject"`
	ID         uint32      `json:"id"`
	Schema     string      `json:"schema"`
	SchemaType string      `json:"schemaType"`
	References []reference `json:"references"`
}

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// Schema answers the schema of an id with everything it refers to.
func (c *Client) Schema(ctx context.Context, id uint32) (avrorow.Registered, error) {
	if r, err, ok := c.known.get(id); ok {
		return r, err
	}
	r, err := c.ask(ctx, id)
	if err == nil || errors.Is(err, avrorow.ErrNoSchema) {
		c.known.put(id, r, err)
	}
	return r, err
}

func (c *Client) ask(ctx context.Context, id uint32) (avrorow.Registered, error) {
	var a answer
	if err := c.get(ctx, &a, "schemas", "ids", strconv.FormatUint(uint64(id), 10)); err != nil {
		return avrorow.Registered{}, err
	}
	r, err := c.complete(ctx, &a)
	if err == nil {
		r.Subject = c.subject(ctx, id)
	}
	return r, err
}

// Latest answers the newest schema of a subject, and its id: a job's own schema, say. What it refers to is not part of its Text.
func (c *Client) Latest(ctx context.Context, subject string) (avrorow.Registered, uint32, error) {
	var a answer
	if err := c.get(ctx, &a, "subjects", subject, "versions", "latest"); err != nil {
		return avrorow.Registered{}, 0, err
	}
	r, err := c.complete(ctx, &a)
	r.Subject = a.Subject
	return r, a.ID, err
}

// subject finds a subject that has the schema, for errors. It is none's fault when there is none to be told.
func (c *Client) subject(ctx context.Context, id uint32) string {
	var versions []reference
	if c.once(ctx, &versions, "schemas", "ids", strconv.FormatUint(uint64(id), 10), "versions") != nil || len(versions) == 0 {
		return ""
	}
	return versions[0].Subject
}

// maxReferences bounds what one schema may refer to.
const maxReferences = 1000

// complete gets what a schema refers to.
func (c *Client) complete(ctx context.Context, a *answer) (avrorow.Registered, error) {
	if a.SchemaType != "" && a.SchemaType != "AVRO" {
		return avrorow.Registered{}, fmt.Errorf("%w: its type is %q", avrorow.ErrNoSchema, a.SchemaType)
	}
	r := avrorow.Registered{Text: a.Schema}
	return r, c.follow(ctx, a.References, map[string]bool{}, &r)
}

// follow appends the schemas of references, each once, those that they refer to first.
func (c *Client) follow(ctx context.Context, refs []reference, seen map[string]bool, r *avrorow.Registered) error {
	for _, ref := range refs {
		key := strconv.Quote(ref.Subject) + strconv.Itoa(ref.Version)
		if seen[key] {
			continue
		}
		if seen[key] = true; len(seen) > maxReferences {
			return fmt.Errorf("%w: it refers to more than %d others", avrorow.ErrNoSchema, maxReferences)
		}
		var a answer
		if err := c.get(ctx, &a, "subjects", ref.Subject, "versions", strconv.Itoa(ref.Version)); err != nil {
			return fmt.Errorf("its reference to version %d of subject %q: %w", ref.Version, ref.Subject, err)
		}
		if err := c.follow(ctx, a.References, seen, r); err != nil {
			return err
		}
		r.References = append(r.References, a.Schema)
	}
	return nil
}

// get asks until there is an answer, or it has been asked often enough.
func (c *Client) get(ctx context.Context, into any, path ...string) error {
	schedule := retry.Schedule{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Attempts: c.options.Attempts}
	for attempt := 1; ; attempt++ {
		err := c.once(ctx, into, path...)
		var passing *passingError
		if !errors.As(err, &passing) || schedule.Spent(attempt) || ctx.Err() != nil {
			return err
		}
		wait := time.NewTimer(schedule.Delay(attempt, retry.Random()))
		select {
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-wait.C:
		}
	}
}

// passingError is worth another try.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// maxAnswerBytes bounds an answer. Schemas of the widest tables have a few MiB.
const maxAnswerBytes = 64 << 20

func (c *Client) once(ctx context.Context, into any, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address(path), nil)
	if err != nil {
		return fmt.Errorf("schema registry: the request to %s cannot be made", c.base.Host)
	}
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	switch {
	case c.options.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+c.options.BearerToken)
	case c.options.Username != "" || c.options.Password != "":
		req.SetBasicAuth(c.options.Username, c.options.Password)
	}
	res, err := c.options.Client.Do(req)
	if err != nil {
		return &passingError{fmt.Errorf("schema registry at %s: %w", c.base.Host, bare(err))}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return &passingError{fmt.Errorf("schema registry at %s: read the answer: %w", c.base.Host, err)}
	case res.StatusCode != http.StatusOK:
		return c.refused(res.StatusCode, body)
	case len(body) > maxAnswerBytes:
		return fmt.Errorf("schema registry at %s: an answer of more than %d bytes", c.base.Host, maxAnswerBytes)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("schema registry at %s: the answer is not what a registry says: %w", c.base.Host, err)
	}
	return nil
}

// address is the URL of a resource. Parts of a path are escaped: a subject may hold slashes.
func (c *Client) address(path []string) string {
	u := strings.TrimRight(c.base.String(), "/")
	for _, part := range path {
		u += "/" + url.PathEscape(part)
	}
	return u
}

// bare takes the URL off an error: where a redirect leads may hold what nobody should see.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// refused tells what a status means. Of the body only the number of the error is told.
func (c *Client) refused(status int, body []byte) error {
	var said struct {
		Code int `json:"error_code"`
	}
	json.Unmarshal(body, &said) // what is no JSON says nothing
	switch {
	case status == http.StatusNotFound && (said.Code == 40401 || said.Code == 40402 || said.Code == 40403):
		return fmt.Errorf("%w (error %d)", avrorow.ErrNoSchema, said.Code)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("schema registry at %s: status %d: expected credentials that may read schemas", c.base.Host, status)
	case status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500:
		return &passingError{fmt.Errorf("schema registry at %s: status %d, error %d", c.base.Host, status, said.Code)}
	}
	return fmt.Errorf("schema registry at %s: status %d, error %d", c.base.Host, status, said.Code)
}
