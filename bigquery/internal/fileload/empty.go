package fileload

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
)

// A batch without rows promises a file that is not there: one without rows and without a URI. The committer makes it, under a name that
// is the same each time, so that a commit that is made again finds its job.

// withoutRows names the file that is to be made for a batch without rows, nil where there is none: promises of one are forgotten where
// there are rows.
func (c *Config) withoutRows(files []loadplan.Committable) (real []loadplan.Committable, empty *loadplan.Committable) {
	for i := range files {
		if f := files[i]; f.URI == "" && f.Rows == 0 {
			f.URI = fmt.Sprintf("%s/%s/%s/empty%s", c.Options.StagingPath, f.Run, folder(f.Destination), c.Options.Encoding(f.Format).Extension())
			files[i], empty = f, &f
		}
	}
	real = slices.DeleteFunc(slices.Clone(files), func(f loadplan.Committable) bool { return empty != nil && f.URI == empty.URI })
	if len(real) > 0 {
		return real, nil
	}
	return files, empty
}

// makeEmpty makes the file.
func (c *Committer) makeEmpty(ctx context.Context, empty *loadplan.Committable) error {
	dst := empty.Destination
	schema, err := c.cfg.Rows.Schema(dst)
	if err != nil {
		return misconfiguration{fmt.Errorf("table schema of %s: %w", dst, err)}
	}
	descriptor, err := c.cfg.Rows.Descriptor(dst)
	if err != nil {
		return misconfiguration{fmt.Errorf("row descriptor of %s: %w", dst, err)}
	}
	plan, err := staging.Compile(schema, descriptor)
	if err != nil {
		return misconfiguration{fmt.Errorf("FILE_LOADS cannot stage a file without rows of %s: %w", dst, err)}
	}
	f, err := openFile(ctx, cloudStorage{c.files}, empty.URI, c.cfg.Options.Encoding(empty.Format), plan)
	if err != nil {
		return err
	}
	return f.finish(ctx)
}
