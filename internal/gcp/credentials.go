package gcp

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

// ErrCredentials says that the key file could not be used. It deliberately wraps nothing and names neither the path nor
// the fault: errors of parsers can quote the key.
var ErrCredentials error = credentialsError{"cannot load the BigQuery service account key file given in the sink configuration", true}

// ErrSourceCredentials is ErrCredentials in the words of those that read, and by errors.Is; ErrCredentials is not ErrSourceCredentials.
var ErrSourceCredentials error = credentialsError{"cannot load the BigQuery service account key file given in the source configuration", true}

// ErrNoCredentials says that no key file is named and that there are no application default credentials, or none that can be
// read. Like ErrCredentials it wraps nothing.
var ErrNoCredentials error = credentialsError{"no credentials are found, or they cannot be read: " +
	"log in with gcloud auth application-default login, name a key file, or use an emulator or --local", false}

// credentialsError is about what this process has at hand, so that trying again does not help.
type credentialsError struct {
	text    string
	keyFile bool
}

func (e credentialsError) Error() string   { return e.text }
func (e credentialsError) Permanent() bool { return true }

// Is makes every error about a key file ErrCredentials, whoever was to use the file.
func (e credentialsError) Is(target error) bool { return e.keyFile && target == ErrCredentials }

// checkDefault finds out whether there are application default credentials. The clients look for them again themselves.
func checkDefault() error {
	if _, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{cloudPlatform}}); err != nil {
		return ErrNoCredentials
	}
	return nil
}

const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// maxKeyFileBytes is many times what a key takes, so that a wrong path costs no memory.
const maxKeyFileBytes = 1 << 20

// loadKeyFile reads a service account key. Other kinds of credentials are refused: some of them make the client call
// addresses named in the file.
func loadKeyFile(path string) (*auth.Credentials, error) {
	data, err := readKeyFile(path)
	if err != nil || len(data) > maxKeyFileBytes || !serviceAccountKey(data) {
		return nil, ErrCredentials
	}
	creds, err := credentials.NewCredentialsFromJSON(credentials.ServiceAccount, data,
		&credentials.DetectOptions{Scopes: []string{cloudPlatform}})
	if err != nil {
		return nil, ErrCredentials
	}
	return creds, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKeyFileBytes+1))
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
