package store

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// DatasetOptions is what a client may say about a dataset.
type DatasetOptions struct {
	Location     string            `json:"location,omitempty"` // as given; "" becomes US
	Description  string            `json:"description,omitempty"`
	FriendlyName string            `json:"friendlyName,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	// DefaultTableExpirationMs and DefaultPartitionExpirationMs are lifetimes in milliseconds; 0 is none.
	DefaultTableExpirationMs     int64 `json:"defaultTableExpirationMs,omitempty"`
	DefaultPartitionExpirationMs int64 `json:"defaultPartitionExpirationMs,omitempty"`
	// MaxTimeTravelHours is 48 to 168; 0 becomes 168.
	MaxTimeTravelHours  int64           `json:"maxTimeTravelHours,omitempty"`
	StorageBillingModel string          `json:"storageBillingModel,omitempty"`
	DefaultCollation    string          `json:"defaultCollation,omitempty"`
	CaseInsensitive     bool            `json:"caseInsensitive,omitempty"`
	Access              json.RawMessage `json:"access,omitempty"` // kept and answered, never enforced
}

// Dataset is one state of a dataset. Nobody changes it once it is published.
type Dataset struct {
	DatasetOptions
	Ref      DatasetRef `json:"ref"`
	ETag     string     `json:"etag"`
	Created  time.Time  `json:"created"`
	Modified time.Time  `json:"modified"`
}

// Hidden reports whether the dataset is one of those that queries keep their results in: their ids begin with "_".
func (d *Dataset) Hidden() bool { return strings.HasPrefix(d.Ref.Dataset, "_") }

func (o *DatasetOptions) clone() DatasetOptions {
	c := *o
	c.Labels = maps.Clone(o.Labels)
	c.Access = slices.Clone(o.Access)
	return c
}

// resolve fills in the defaults and refuses what BigQuery refuses.
func (o *DatasetOptions) resolve() error {
	if o.Location == "" {
		o.Location = "US"
	}
	if o.MaxTimeTravelHours == 0 {
		o.MaxTimeTravelHours = 168
	}
	if h := o.MaxTimeTravelHours; h < 48 || h > 168 || h%24 != 0 {
		return refusal.New(refusal.Invalid, "maxTimeTravelHours must be a multiple of 24 between 48 and 168, got %d", h)
	}
	if o.DefaultTableExpirationMs != 0 && o.DefaultTableExpirationMs < time.Hour.Milliseconds() {
		return refusal.New(refusal.Invalid, "defaultTableExpirationMs must be at least one hour (3600000), got %d", o.DefaultTableExpirationMs)
	}
	return nil
}

func checkDatasetID(id string) error {
	ok := id != "" && len(id) <= 1024
	for _, r := range id {
		ok = ok && (r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	if !ok {
		return refusal.New(refusal.Invalid, "Invalid dataset ID %q. Dataset IDs must be alphanumeric (plus underscores) and must be at most 1024 characters long.", id)
	}
	return nil
}

// refusedTableRunes change the meaning of a resource name or of SQL. BigQuery allows letters, marks, numbers, connectors,
// dashes and spaces of all scripts (BigQuery documentation, "Table naming").
const refusedTableRunes = "!\"#$%&'()*+,./:;<=>?@[\\]^`{|}~\n\r\t"

func checkTableID(id string) error {
	if id == "" || len(id) > 1024 || !utf8.ValidString(id) || strings.ContainsAny(id, refusedTableRunes) {
		return refusal.New(refusal.Invalid, "Invalid table ID %q. Table IDs must be alphanumeric (plus underscores, dashes and spaces) "+
			"and must be at most 1024 bytes long. Also, Table decorators cannot be used.", id)
	}
	return nil
}
