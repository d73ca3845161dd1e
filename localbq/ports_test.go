package localbq_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"cloud.google.com/go/bigquery"
	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/millrace-dev/millrace/localbq"
)

func TestSinglePort(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{SinglePort: true})
	if bq.REST() != bq.GRPC() {
		t.Fatalf("REST at %s, gRPC at %s", bq.REST(), bq.GRPC())
	}
	ctx := context.Background()
	t.Run("appends, reads and REST", func(t *testing.T) {
		c := open()
		for range 50 {
			c.append(ids.first(t, stream("d.t"), "id: 1", "id: 2"))
		}
		client, err := bigquery.NewClient(ctx, bq.Project(), bq.ClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if m, err := client.Dataset("d").Table("t").Metadata(ctx); err != nil || m.NumRows != 100 {
			t.Errorf("metadata %+v, %v", m, err)
		}
		reader, err := storage.NewBigQueryReadClient(ctx, bq.GRPCClientOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		session, err := reader.CreateReadSession(ctx, &storagepb.CreateReadSessionRequest{
			Parent: "projects/p", ReadSession: &storagepb.ReadSession{Table: path("d.t"), DataFormat: storagepb.DataFormat_ARROW}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := reader.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: session.GetStreams()[0].GetName()})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := rows.Recv(); err != nil || r.GetRowCount() != 100 {
			t.Errorf("%d rows, %v", r.GetRowCount(), err)
		}
	})
	t.Run("refusals keep their details", func(t *testing.T) {
		s := open().refused(describe(t, "id int64", "x string").first(t, stream("d.t"), "id: 1"), codes.InvalidArgument, "extra fields")
		if code := storageCode(t, s); code != storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS {
			t.Errorf("StorageError %v", code)
		}
		open().ends(ids.first(t, stream("d.nosuch"), "id: 1"), codes.PermissionDenied, "(or it may not exist)")
	})
	t.Run("REST over HTTP/2 in clear text", func(t *testing.T) {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport}).Get("http://" + bq.REST() + "/bigquery/v2/projects/" + bq.Project() + "/datasets/d/tables/t")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.ProtoMajor != 2 || r.StatusCode != http.StatusOK {
			t.Errorf("HTTP/%d, status %d", r.ProtoMajor, r.StatusCode)
		}
	})
	t.Run("a lost acknowledgement", func(t *testing.T) {
		arm(t, bq, localbq.Fault{Match: localbq.FaultMatch{Method: "AppendRows"}, Action: localbq.FaultAction{LoseAck: true}})
		open().ends(ids.first(t, stream("d.t"), "id: 3"), codes.Unavailable, "")
		if n, err := bq.NumRows("d.t"); err != nil || n != 101 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
	t.Run("an address for gRPC is too many", func(t *testing.T) {
		if _, err := localbq.Start(ctx, localbq.Config{SinglePort: true, GRPCAddr: "127.0.0.1:0"}); err == nil {
			t.Error("it started")
		}
	})
}

func dial(t *testing.T, bq *localbq.Instance, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(bq.GRPC(), grpc.WithTransportCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestGRPCTLS(t *testing.T) {
	bq, ids, open := oneTable(t, localbq.Config{GRPCTLS: true})
	open().append(ids.first(t, stream("d.t"), "id: 1"))
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bq.Authority()) {
		t.Fatalf("authority %q", bq.Authority())
	}
	check := func(c credentials.TransportCredentials) error {
		_, err := grpc_health_v1.NewHealthClient(dial(t, bq, c)).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		return err
	}
	if err := check(credentials.NewTLS(&tls.Config{RootCAs: pool})); err != nil {
		t.Error(err)
	}
	if check(credentials.NewTLS(&tls.Config{RootCAs: x509.NewCertPool()})) == nil || check(insecure.NewCredentials()) == nil {
		t.Error("a client without the authority got through")
	}
}

func TestHealthAndReflection(t *testing.T) {
	for name, c := range map[string]localbq.Config{"own port": {}, "single port": {SinglePort: true}} {
		t.Run(name, func(t *testing.T) {
			bq := start(t, c)
			conn := dial(t, bq, insecure.NewCredentials())
			h, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
				t.Errorf("%v, %v", h, err)
			}
			r, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}); err != nil {
				t.Fatal(err)
			}
			answer, err := r.Recv()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, s := range answer.GetListServicesResponse().GetService() {
				found[s.GetName()] = true
			}
			for _, want := range []string{"google.cloud.bigquery.storage.v1.BigQueryWrite", "google.cloud.bigquery.storage.v1.BigQueryRead"} {
				if !found[want] {
					t.Errorf("no service %s in %v", want, found)
				}
			}
		})
	}
}
