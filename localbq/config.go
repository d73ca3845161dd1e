package localbq

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/profile"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

type (
	// Profile is limits and windows of propagation; the zero value has the default limits and no windows.
	Profile = profile.Profile
	// Quotas are what a project may use in one location, and Quota one figure of them; none by default.
	Quotas = profile.Quotas
	Quota  = profile.Quota
	// Window is a length of time that is drawn anew for each change, and Denials how often calls on a fresh table are denied.
	Window  = profile.Window
	Denials = profile.Denials
	// Clock is where all time comes from.
	Clock = clock.Clock
	// ManualClock stands still until it is advanced.
	ManualClock = clock.Manual
	// QueryEngine runs statements; duckdb.New makes one.
	QueryEngine = query.Engine
	// Mode is how much a table keeps of what is written to it.
	Mode = store.Mode
	// Sync says when writes are forced to the disk.
	Sync = store.Sync
)

// When writes are forced to the disk.
const (
	SyncNone     = store.SyncNone     // when the system sees fit
	SyncInterval = store.SyncInterval // every second
	SyncAlways   = store.SyncAlways   // before they are acknowledged
)

// The modes of tables. Reads of a table that keeps no rows are refused.
const (
	ModeStore    = store.ModeStore    // rows are kept
	ModeValidate = store.ModeValidate // rows are decoded and checked, counted, and dropped
	ModeNull     = store.ModeNull     // row boundaries are counted, nothing else
)

// FriendlyProfile keeps every rule and limit and has no windows and no quotas: the zero value, the default.
func FriendlyProfile() Profile { return profile.Friendly() }

// ServiceProfile adds the windows that BigQuery has been observed to have, and its quotas. Every figure can be changed.
func ServiceProfile() Profile { return profile.Service() }

// DefaultProject is the project of tables named without one.
const DefaultProject = "local-project"

// Config says what to start. The zero value works: everything in memory, ports of the kernel's choice.
type Config struct {
	// Project completes table names of two parts in this package's own methods; "" is DefaultProject. Any project can be
	// used over the wire.
	Project string

	// RESTAddr, GRPCAddr and GCSAddr are host:port; "" is 127.0.0.1:0, a free port, and no host is 127.0.0.1. A host that is not
	// the loopback interface, 0.0.0.0 for all interfaces, opens the service to whoever can reach it, with no credential checked;
	// that is logged as a warning for each listener, and Instance.Exposed tells.
	RESTAddr, GRPCAddr, GCSAddr string
	// Hosts are names that REST and Cloud Storage answer to beside addresses, localhost and names without dots. By any other
	// name, and for pages of other origins, they answer 403: otherwise a web page could drive the service.
	Hosts []string
	// SinglePort serves everything on RESTAddr, told apart by content type and path; GRPCAddr and GCSAddr must be "".
	SinglePort bool
	// GRPCTLS serves gRPC over TLS, with a certificate of an authority that is made for the instance: Instance.Authority. Not
	// with SinglePort.
	GRPCTLS bool

	// Dir is a folder that everything is kept in and that outlives the process; "" keeps it in memory only. It is made if it
	// is not there. One instance at a time can have it.
	Dir string
	// Sync says what of the folder survives the end of the machine. What has been acknowledged survives the end of the
	// process, however it ends, with any of them.
	Sync Sync

	// AutoCreateDataset makes a dataset, in US, the first time a table is created in it.
	AutoCreateDataset bool
	// Modes chooses the mode that new tables start in, by "project.dataset.table" or "dataset.table"; "*" is all others.
	// Nil stores everything.
	Modes map[string]Mode

	Profile Profile
	// Clock is the source of time; nil is the machine's.
	Clock Clock
	// Seed is where every random choice derives from; 0 picks one, which Instance.Seed tells and the log shows.
	Seed uint64
	// Deny makes the service refuse callers, to test what a refusal looks like.
	Deny []Denial

	// Audit says how much the audit log keeps.
	Audit AuditOptions

	// Queries runs statements and row restrictions; nil answers them with 501. The instance closes it.
	Queries QueryEngine

	// Logger hears of starts, warnings and recoveries; nil is silence.
	Logger *slog.Logger
}

// AuditOptions bound the audit log. Zero values are the defaults.
type AuditOptions struct {
	// MaxBytes is about the memory that records may take; 0 is 256 MiB. Beyond it the oldest records are forgotten, or read
	// back from the folder if there is one.
	MaxBytes int64
	// CountsOnly keeps no digests of rows and of the requests that carry them, for runs in which throughput is measured.
	CountsOnly bool
}

// mode is the mode a new table starts in.
func (c *Config) mode(ref store.TableRef) Mode {
	for _, name := range []string{ref.Project + "." + ref.Dataset + "." + ref.Table, ref.Dataset + "." + ref.Table, "*"} {
		if m, ok := c.Modes[name]; ok {
			return m
		}
	}
	return ModeStore
}

// table reads "project.dataset.table" or "dataset.table". The project may have dots of its own.
func (c *Config) table(name string) (store.TableRef, error) {
	parts := strings.Split(name, ".")
	n := len(parts)
	if n < 2 || parts[n-1] == "" || parts[n-2] == "" {
		return store.TableRef{}, fmt.Errorf("table name %q: expected dataset.table or project.dataset.table", name)
	}
	ref := store.TableRef{Project: c.Project, Dataset: parts[n-2], Table: parts[n-1]}
	if n > 2 {
		ref.Project = strings.Join(parts[:n-2], ".")
	}
	return ref, nil
}
