package gcp

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

// ErrCredentials says that the key file could not be used. It deliberately wraps nothing and names neither the path nor
// the fault: errors of parsers can quote the key.
var ErrCredentials = errors.New("cannot load the BigQuery service account key file given in the sink configuration")

const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// loadKeyFile reads a service account key. Other kinds of credentials are refused: some of them make the client call
// addresses named in the file.
func loadKeyFile(path string) (*auth.Credentials, error) {
	data, err := os.ReadFile(path)
	if err != nil || !serviceAccountKey(data) {
		return nil, ErrCredentials
	}
	creds, err := credentials.NewCredentialsFromJSON(credentials.ServiceAccount, data,
		&credentials.DetectOptions{Scopes: []string{cloudPlatform}})
	if err != nil {
		return nil, ErrCredentials
	}
	return creds, nil
}

// serviceAccountKey checks the key itself too, because the official library parses it only when it first needs a token
// and then answers with an error of its own.
func serviceAccountKey(data []byte) bool {
	var key struct {
		Type        string `json:"type"`
		ClientEmail string `json:"client_email"`
		PrivateKey  string `json:"private_key"`
	}
	if json.Unmarshal(data, &key) != nil {
		return false
	}
	return key.Type == string(credentials.ServiceAccount) && key.ClientEmail != "" && signingKey([]byte(key.PrivateKey))
}

func signingKey(text []byte) bool {
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil {
		return false
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		_, ok := key.(crypto.Signer)
		return ok
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
