package gcp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Connection says which service clients talk to and with whose credentials. The zero value is the real service with
// application default credentials. A Connection is comparable: equal ones may share clients.
//
// Application default credentials are found by the official library, which reads GOOGLE_APPLICATION_CREDENTIALS and
// GOOGLE_CLOUD_QUOTA_PROJECT. BIGQUERY_EMULATOR_HOST is not among the variables that Google's Go clients read.
type Connection struct {
	// GRPCEndpoint is the host:port of an emulator of the Storage Read and Write services. Emulators are reached in
	// plain text and without credentials.
	GRPCEndpoint string
	// RESTEndpoint is the host:port of an emulator of the BigQuery REST service.
	RESTEndpoint string
	// StorageEndpoint is the host:port of an emulator of Cloud Storage.
	StorageEndpoint string

	// KeyFile is the path of a service account key (JSON), read when a client is opened and never before. "" uses
	// application default credentials. It cannot be combined with an emulator.
	KeyFile string

	// QuotaProject is billed for the calls; "" is what the credentials say.
	QuotaProject string
}

// Emulated reports whether any part of the connection is an emulator.
func (c Connection) Emulated() bool {
	return c.GRPCEndpoint != "" || c.RESTEndpoint != "" || c.StorageEndpoint != ""
}

// Validate reports every fault of the connection at once, without reading or dialling anything.
func (c Connection) Validate() error {
	return errors.Join(
		checkEndpoint("GRPCEndpoint", c.GRPCEndpoint),
		checkEndpoint("RESTEndpoint", c.RESTEndpoint),
		checkEndpoint("StorageEndpoint", c.StorageEndpoint),
		c.checkKeyFile(),
		checkQuotaProject(c.QuotaProject),
	)
}

func (c Connection) checkKeyFile() error {
	switch {
	case c.KeyFile == "":
		return nil
	case strings.TrimSpace(c.KeyFile) == "":
		return errors.New("KeyFile must not be blank: leave it empty to use application default credentials")
	case c.Emulated():
		return errors.New("KeyFile cannot be combined with an emulator endpoint: emulators take no credentials")
	}
	return nil
}

func checkQuotaProject(s string) error {
	if s != "" && strings.ContainsFunc(s, unicode.IsSpace) {
		return fmt.Errorf("QuotaProject must be a project id, was %q", s)
	}
	return nil
}

func checkEndpoint(name, s string) error {
	if s == "" || hostPort(s) {
		return nil
	}
	return fmt.Errorf("%s must be host:port, was '%s'", name, s)
}

// hostPort reports whether s is a host, a colon and a port between 1 and 65535. Unlike net.SplitHostPort followed by a
// dial it takes no service names, signs or blanks. A host with a scheme or a path is no host.
func hostPort(s string) bool {
	colon := strings.LastIndexByte(s, ':')
	if colon <= 0 || strings.ContainsFunc(s, unicode.IsSpace) {
		return false
	}
	host, port := s[:colon], s[colon+1:]
	if strings.ContainsRune(host, '/') || strings.ContainsRune(host, ':') && !bracketed(host) {
		return false
	}
	if port == "" || strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func bracketed(host string) bool {
	return strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > 2
}
