package gcp

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret-name.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func serviceAccount(t *testing.T, change func(map[string]string)) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{
		"type": "service_account", "project_id": "p", "client_email": "robot@p.iam.gserviceaccount.com",
		"private_key_id": "1", "token_uri": "https://oauth2.googleapis.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	change(fields)
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, string(data))
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	const text = "cannot load the BigQuery service account key file given in the sink configuration"
	unreadable := writeFile(t, "secret-name")
	if err := os.Chmod(unreadable, 0); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(t.TempDir(), "secret-name.json") // which root cannot read either
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"links in a circle": loop,
		"missing":           filepath.Join(t.TempDir(), "secret-name.json"),
		"a folder":          t.TempDir(),
		"no permission":     unreadable,
		"newline":           filepath.Join(t.TempDir(), "secret-name\n.json"),
		"NUL":               "secret-name\x00",
		"endless":           "/dev/zero",
		"not UTF-8":         "secret-name\xff",
		"not text":          writeFile(t, `{"type":["service_account"]}`),
		"garbage":           writeFile(t, "-----BEGIN secret-name"),
		"authorized_user":   writeFile(t, `{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c"}`),
		"external":          writeFile(t, `{"type":"external_account","token_url":"http://169.254.169.254"}`),
		"key unreadable":    serviceAccount(t, func(f map[string]string) { f["private_key"] = "secret-name" }),
		"no email":          serviceAccount(t, func(f map[string]string) { f["client_email"] = "" }),
	}
	for name, path := range bad {
		t.Run("SW-153_"+name, func(t *testing.T) {
			c := Connection{KeyFile: path}
			if err := c.Validate(); err != nil {
				t.Fatalf("the file is read before it is needed: %v", err)
			}
			_, write := c.WriteClient(t.Context())
			_, read := c.ReadClient(t.Context())
			_, rest := c.REST(t.Context())
			for _, err := range []error{write, read, rest} {
				if !errors.Is(err, ErrCredentials) || errors.Is(err, ErrSourceCredentials) || err.Error() != text || errors.Unwrap(err) != nil {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	t.Run("good", func(t *testing.T) {
		c := Connection{KeyFile: serviceAccount(t, func(map[string]string) {}), QuotaProject: "q"}
		w, err := c.WriteClient(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		r, err := c.REST(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	})
}

type writeServer struct {
	storagepb.UnimplementedBigQueryWriteServer
	headers metadata.MD
}

func (s *writeServer) GetWriteStream(ctx context.Context, r *storagepb.GetWriteStreamRequest) (*storagepb.WriteStream, error) {
	s.headers, _ = metadata.FromIncomingContext(ctx)
	// More than grpc's own limit of 4 MiB.
	return &storagepb.WriteStream{Name: r.Name, Location: strings.Repeat("x", 5<<20)}, nil
}

func TestGRPCEmulator(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	fake := &writeServer{}
	storagepb.RegisterBigQueryWriteServer(srv, fake)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }() // ends at srv.Stop, joined below
	defer func() { srv.Stop(); <-done }()

	w, err := Connection{GRPCEndpoint: l.Addr().String()}.WriteClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	got, err := w.GetWriteStream(t.Context(), &storagepb.GetWriteStreamRequest{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "n" || len(got.Location) != 5<<20 {
		t.Errorf("got name %q and %d bytes", got.Name, len(got.Location))
	}
	if a := fake.headers.Get("authorization"); len(a) != 0 {
		t.Errorf("an emulator was sent credentials: %v", a)
	}
}

func TestRESTEmulator(t *testing.T) {
	t.Parallel()
	var path, auth string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.Path, r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"p:d"}`)
	}))
	defer srv.Close()
	r, err := Connection{RESTEndpoint: srv.Listener.Addr().String()}.REST(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, err := r.Datasets.Get("p", "d").Do()
	if err != nil {
		t.Fatal(err)
	}
	if d.Id != "p:d" || path != "/bigquery/v2/projects/p/datasets/d" || auth != "" {
		t.Errorf("got dataset %q through %q with credentials %q", d.Id, path, auth)
	}
}

func TestHalfAnEmulatorNeverReachesTheRealService(t *testing.T) {
	t.Parallel()
	if _, err := (Connection{GRPCEndpoint: "h:1"}).REST(t.Context()); !errors.Is(err, ErrEndpoint) {
		t.Errorf("REST: %v", err)
	}
	if _, err := (Connection{RESTEndpoint: "h:1"}).ReadClient(t.Context()); !errors.Is(err, ErrEndpoint) {
		t.Errorf("gRPC: %v", err)
	}
}

func TestNoDefaultCredentials(t *testing.T) {
	for name, content := range map[string]string{"absent": "", "garbage": "-----BEGIN PRIVATE KEY----- secret", "another kind": `{"type": "nothing known"}`} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "adc.json")
			if content != "" {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
			_, err := Connection{}.WriteClient(t.Context())
			var said interface{ Permanent() bool }
			if err != ErrNoCredentials || !errors.As(err, &said) || !said.Permanent() || strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %v", err, ErrNoCredentials)
			}
		})
	}
}
