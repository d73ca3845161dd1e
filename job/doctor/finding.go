package doctor

// Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	OK    Level = "ok"    // as it should be
	Warn  Level = "warn"  // the job may run, and somebody should know
	Error Level = "error" // the job would fail, or lose what it is to keep
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	Thing string `json:"thing"` // such as "table my-project.shop.orders"
	Found string `json:"found"` // what it is like
	// Do is what to do about it, "" where there is nothing to do.
	Do string `json:"do,omitempty"`
}

// Report is everything that was looked at.
type Report struct {
	Job      string    `json:"job"`
	Findings []Finding `json:"findings"`
}

// Worst is the worst level there is.
func (r *Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		switch f.Level {
		case Error:
			return Error
		case Warn:
			worst = Warn
		}
	}
	return worst
}

func (r *Report) add(l Level, thing, found, do string) {
	r.Findings = append(r.Findings, Finding{l, thing, found, do})
}
