//go:build unix

package bigquery

import (
	"syscall"
	"time"
)

// processorTime is what the process has used: on a machine with other work it compares better than time.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
