package localbq

import (
	"net/http"

	"github.com/millrace-dev/millrace/localbq/internal/admin"
	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// NewManualClock is a clock that stands still, at 2026-01-01 00:00:00 UTC.
func NewManualClock() *ManualClock { return clock.NewManual(clock.Start) }

// ScaledClock runs factor times as fast as the machine's, from the present on; factor must be positive.
func ScaledClock(factor float64) Clock { return clock.Scaled(factor) }

func (i *Instance) newAdmin() http.Handler {
	return admin.New(admin.Deps{
		Faults: i.faults, Clock: i.config.Clock, WriteAudit: i.audit.WriteTo, Check: i.checkTable, SetMode: i.setMode,
		ApplyChanges: i.ApplyChanges, Denials: func() any { return i.denials.all() }, SetDenials: i.setDenials,
	})
}

func (i *Instance) setDenials(text []byte) error {
	all, err := ParseDenials(text)
	if err != nil {
		return err
	}
	return i.SetDenials(all...)
}

func (i *Instance) setMode(table, mode string) error {
	m, err := store.ParseMode(mode)
	if err != nil {
		return err
	}
	return i.SetMode(table, m)
}

// tableReport is every check of the audit log on one table.
type tableReport struct {
	Rows              int64        `json:"rows"`
	AppliedTwice      [][]AuditRow `json:"appliedTwice"`
	AckedNotVisible   []AuditRow   `json:"ackedNotVisible"`
	VisibleNeverAcked []AuditRow   `json:"visibleNeverAcked"`
	Unaccounted       []AuditRange `json:"unaccounted"`
}

func (i *Instance) checkTable(table string) (any, error) {
	var report tableReport
	var err error
	a := i.Audit()
	if report.Rows, err = i.NumRows(table); err != nil {
		return nil, err
	}
	if report.AppliedTwice, err = a.AppliedTwice(table); err != nil {
		return nil, err
	}
	if report.AckedNotVisible, err = a.AckedNotVisible(table); err != nil {
		return nil, err
	}
	if report.VisibleNeverAcked, err = a.VisibleNeverAcked(table); err != nil {
		return nil, err
	}
	report.Unaccounted, err = a.Unaccounted(table)
	return report, err
}
