package lineage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// HTTP is a server that takes events.
type HTTP struct {
	// URL is where events are posted. Without a path it is the one of OpenLineage, /api/v1/lineage.
	URL string
	// Token is sent as a bearer token and told to nobody else. "" sends none.
	Token string
	// Timeout bounds one request. Default 5 s.
	Timeout time.Duration
}

// endpoint is where servers of OpenLineage take events.
const endpoint = "/api/v1/lineage"

// Validate reports every fault, and quotes neither the URL, which may hold a key, nor the token.
func (h HTTP) Validate() error {
	var faults []error
	if _, err := ParseURL(h.URL); err != nil {
		faults = append(faults, fmt.Errorf("URL %w", err))
	}
	if strings.ContainsFunc(h.Token, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) || unicode.IsSpace(r) }) {
		faults = append(faults, errors.New("Token has characters that no header can hold"))
	}
	if h.Timeout < 0 {
		faults = append(faults, fmt.Errorf("Timeout is %v: expected a positive time, or 0 for 5s", h.Timeout))
	}
	return errors.Join(faults...)
}

// ParseURL reads where events go. Its errors do not quote the URL, which may hold a key.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is no address of a server: expected such as https://lineage.example.com")
	case u.User != nil:
		return nil, errors.New("has a user or a password: take them out, and let tokenEnv name the environment variable with a token")
	case u.Fragment != "":
		return nil, errors.New("has a fragment, which is not sent: take it out")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = endpoint
	}
	return u, nil
}

// server posts events.
type server struct {
	url    string
	token  string
	client *http.Client
}

func newServer(h HTTP) *server {
	u, _ := ParseURL(h.URL) // it has been checked
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}
	return &server{u.String(), h.Token, &http.Client{
		Transport: t,
		Timeout:   cmp.Or(h.Timeout, 5*time.Second),
		// The token is for the server that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswerBytes is how much of an answer is read, so that the connection can be used again.
const maxAnswerBytes = 64 << 10

func (t *server) send(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return final{errors.New("the address of the server cannot be used")}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "millrace")
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	answer, err := t.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return fmt.Errorf("post the event: %w", err)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswerBytes)
	answer.Body.Close()
	return judge(answer.StatusCode)
}

// judge makes an error of a status, final unless the server may think better of it.
func judge(status int) error {
	if status >= 200 && status < 300 {
		return nil
	}
	err := fmt.Errorf("the server answered %d %s", status, http.StatusText(status))
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if status >= 500 {
		return err
	}
	return final{err}
}

func (t *server) close() error {
	t.client.CloseIdleConnections()
	return nil
}
