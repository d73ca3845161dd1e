package bigquery

import "github.com/millrace-dev/millrace/internal/gcp"

// Connection says which BigQuery sources and sinks talk to and with whose credentials. The zero value is the real
// service with application default credentials. Fields:
//
//   - GRPCEndpoint, RESTEndpoint, StorageEndpoint: host:port of an emulator (for one, the local service of package
//     localbq), reached in plain text and without credentials. The default is Google's endpoint.
//   - KeyFile: path of a service account key, read when a writer, a committer or a reader first needs it, on the machine
//     that it runs on. It cannot be combined with emulator endpoints. The default is application default credentials,
//     found as the official libraries do (GOOGLE_APPLICATION_CREDENTIALS, gcloud, the metadata server).
//   - QuotaProject: the project that calls are counted against. The default is what the credentials say.
type Connection = gcp.Connection
