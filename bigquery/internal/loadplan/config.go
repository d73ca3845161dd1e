package loadplan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Config is what of a sink's options its plans depend on. The zero value is the default.
type Config struct {
	JobProject  string // where jobs run; "" is the project of each destination
	Location    string // of all jobs; "" is that of the dataset that a job writes to
	TempProject string // of TempDataset; "" is the project of each destination
	TempDataset string // of temporary tables; "" is the dataset of each destination
	Disposition Disposition
	// Bounds are limits below the service's; what is 0 in them, and all but those of one load and one copy, is the service's.
	Bounds Limits
	// AllowProfileChange lets committables be planned that were made with other options; see [Config.Profile].
	AllowProfileChange bool
}

// Profile stands for the options that decide where an earlier job is looked for and what it is called: a committable keeps the one
// it was made with. Committed with another one its jobs would not be found, and its rows be loaded twice. It is 8 hexadecimal
// digits of a hash over the values as they are configured.
func (c Config) Profile() string {
	var b []byte
	for _, v := range []string{c.JobProject, c.Location, c.TempProject, c.TempDataset, c.Disposition.String()} {
		if v == "" {
			b = append(b, "-:"...)
			continue
		}
		b = append(append(strconv.AppendInt(b, int64(len(v)), 10), ':'), v...)
	}
	if l := c.Bounds; l.FilesPerLoad != 0 || l.BytesPerLoad != 0 || l.SourcesPerCopy != 0 {
		b = fmt.Appendf(b, "%d:%d:%d", l.FilesPerLoad, l.BytesPerLoad, l.SourcesPerCopy) // other cuts are other jobs
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:4])
}

// check refuses what would spoil the names of temporary tables.
func (c Config) check() error {
	if int(c.Disposition) >= len(dispositionNames) {
		return fmt.Errorf("write disposition %d is none", c.Disposition)
	}
	if err := (table.Destination{Project: cmp.Or(c.TempProject, "p"), Dataset: cmp.Or(c.TempDataset, "d"), Table: "t"}).Validate(); err != nil {
		return fmt.Errorf("temporary tables: %w", err)
	}
	return nil
}
