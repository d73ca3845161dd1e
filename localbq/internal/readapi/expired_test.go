package readapi

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

// leaping moves a clock on by a session's life behind every look at it, as somebody may who advances it meanwhile.
type leaping struct {
	*clock.Manual
	leaps bool
}

func (l *leaping) Now() time.Time {
	now := l.Manual.Now()
	if l.leaps {
		l.Advance(lifetime)
	}
	return now
}

func TestSessionThatExpiresWhileItIsMade(t *testing.T) {
	var leap leaping
	f := setup(t, func(d *Deps) {
		leap.Manual = d.Clock.(*clock.Manual)
		d.Clock = &leap
	})
	f.numbers(3)
	leap.leaps = true
	s := f.session(avroSession())
	_, err := f.read(s.Streams[0].Name, 0)
	refused(t, err, codes.FailedPrecondition, "session expired: "+s.Name+": a read session lives six hours")
	leap.leaps = false
	s = f.session(avroSession())
	if _, err := f.read(s.Streams[0].Name, 0); err != nil {
		t.Errorf("the next session: %v", err)
	}
}
