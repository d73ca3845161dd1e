package job

import (
	"cmp"
	"fmt"

	"github.com/millrace-dev/millrace/files"
)

// inPaths tells of files that are not there as the mistakes in the job file that they are.
func (p *Parsed) inPaths(err error) error {
	var faults []error
	for _, at := range pathErrors(err) {
		faults = append(faults, p.fault(fmt.Sprintf("source.files.paths[%d]", at.Index), "%v", at.Err))
	}
	return cmp.Or(joinFaults(faults), err)
}

// pathErrors are those that err wraps.
func pathErrors(err error) []*files.PathError {
	switch e := err.(type) {
	case *files.PathError:
		return []*files.PathError{e}
	case interface{ Unwrap() error }:
		return pathErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*files.PathError
		for _, in := range e.Unwrap() {
			all = append(all, pathErrors(in)...)
		}
		return all
	}
	return nil
}
