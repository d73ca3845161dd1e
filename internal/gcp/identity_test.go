package gcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentity(t *testing.T) {
	key := serviceAccount(t, func(map[string]string) {})
	user := writeFile(t, `{"type":"authorized_user","client_id":"a","client_secret":"secret-b","refresh_token":"secret-c","quota_project_id":"q"}`)
	for name, c := range map[string]struct {
		connection Connection
		adc        string
		want       Identity
	}{
		"an emulator":               {Connection{GRPCEndpoint: "h:1"}, key, Identity{Kind: "emulator"}},
		"a key file":                {Connection{KeyFile: key, QuotaProject: "q"}, "", Identity{"key file", "robot@p.iam.gserviceaccount.com", "q"}},
		"a key as the default":      {Connection{}, key, Identity{"application default: service_account", "robot@p.iam.gserviceaccount.com", ""}},
		"a user as the default":     {Connection{}, user, Identity{"application default: authorized_user", "", "q"}},
		"another project that pays": {Connection{QuotaProject: "r"}, user, Identity{"application default: authorized_user", "", "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", c.adc)
			got, err := c.connection.Identity(t.Context())
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
			if text := fmt.Sprintf("%+v", got); strings.Contains(text, "secret") || strings.Contains(text, "PRIVATE") {
				t.Errorf("%s holds what is secret", text)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "secret"))
		if _, err := (Connection{}).Identity(t.Context()); err != ErrNoCredentials {
			t.Errorf("error %v", err)
		}
		bad := filepath.Join(t.TempDir(), "secret\nname.json")
		if err := os.WriteFile(bad, []byte("-----BEGIN PRIVATE KEY----- secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Connection{KeyFile: bad}).Identity(t.Context()); err != ErrCredentials {
			t.Errorf("error %v", err)
		}
	})
}
