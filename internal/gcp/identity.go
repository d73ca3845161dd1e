package gcp

import (
	"context"
	"encoding/json"
	"os"

	"cloud.google.com/go/auth/credentials"
)

// Identity is whose credentials a connection has, as far as they tell by themselves. It holds nothing secret.
type Identity struct {
	// Kind is "emulator", for which there are none, "key file", "application default: " and the type in their file, or
	// "application default: metadata server".
	Kind string
	// Principal is the account, "" where the credentials do not name it.
	Principal string
	// QuotaProject is what calls are counted against, "" where that is the project of each call.
	QuotaProject string
}

// Identity reads the credentials and asks nobody about them.
func (c Connection) Identity(ctx context.Context) (Identity, error) {
	if c.Emulated() {
		return Identity{Kind: "emulator"}, nil
	}
	if _, err := c.identity(); err != nil {
		return Identity{}, err
	}
	if c.KeyFile != "" {
		text, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return Identity{}, ErrCredentials
		}
		return Identity{Kind: "key file", Principal: accountOf(text), QuotaProject: c.QuotaProject}, nil
	}
	creds, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{cloudPlatform}})
	if err != nil {
		return Identity{}, ErrNoCredentials
	}
	id := Identity{Kind: "application default: metadata server", QuotaProject: c.QuotaProject}
	if text := creds.JSON(); len(text) > 0 {
		var file struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(text, &file) != nil || !plainWord(file.Type) {
			file.Type = "file"
		}
		id.Kind, id.Principal = "application default: "+file.Type, accountOf(text)
	}
	if id.QuotaProject == "" {
		id.QuotaProject, _ = creds.QuotaProjectID(ctx) // which credentials need not have
	}
	return id, nil
}

// accountOf is the account that credentials name. Files of users name none.
func accountOf(text []byte) string {
	var file struct {
		ClientEmail string `json:"client_email"`
	}
	if json.Unmarshal(text, &file) != nil {
		return ""
	}
	return file.ClientEmail
}

// plainWord keeps what is no type of credentials out of messages.
func plainWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '_' {
			return false
		}
	}
	return s != "" && len(s) < 50
}
