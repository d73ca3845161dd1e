//go:build !unix

package bigquery

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
