package gcp

import (
	"strings"
	"testing"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"localhost", "h:0", "h:+80", "h: 80", ":80", "h:65536", "h:", "h:80 ", "http://h:80", "::1:80", "h:٣"} {
		t.Run("SW-152_refused/"+bad, func(t *testing.T) {
			err := Connection{GRPCEndpoint: bad}.Validate()
			want := "GRPCEndpoint must be host:port, was '" + bad + "'"
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	for _, good := range []string{"[::1]:9050", "localhost:1", "10.0.0.1:65535", "bq.svc.cluster.local:443"} {
		t.Run("SW-152_taken/"+good, func(t *testing.T) {
			c := Connection{GRPCEndpoint: good, RESTEndpoint: good, StorageEndpoint: good}
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateJoinsFaults(t *testing.T) {
	t.Parallel()
	err := Connection{GRPCEndpoint: "a", RESTEndpoint: "b:x", StorageEndpoint: "c:0", KeyFile: "k.json", QuotaProject: "a b"}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"GRPCEndpoint", "RESTEndpoint", "StorageEndpoint", "KeyFile cannot be combined", "QuotaProject"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if err := (Connection{}).Validate(); err != nil {
		t.Errorf("zero value: %v", err)
	}
	if err := (Connection{KeyFile: " \t"}).Validate(); err == nil || !strings.Contains(err.Error(), "must not be blank") {
		t.Errorf("blank key file: %v", err)
	}
}
