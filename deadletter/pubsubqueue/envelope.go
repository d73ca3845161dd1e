package pubsubqueue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/deadletter"
)

// maxAttributeBytes is the longest value of an attribute that Pub/Sub takes
// (https://cloud.google.com/pubsub/quotas, "Attribute value size: 1024 bytes").
const maxAttributeBytes = 1024

// The attributes.
const (
	attrConnector   = "dlq-connector"
	attrDestination = "dlq-destination"
	attrError       = "dlq-error"
	attrTimestamp   = "dlq-timestamp"
	attrSubtask     = "dlq-subtask"
	attrJob         = "dlq-job"
	attrFile        = "dlq-file"
	attrLine        = "dlq-line"
	attrPosition    = "dlq-position"
	attrSplit       = "dlq-split"
	attrPayload     = "dlq-payload"
	attrContext     = "dlq-context"
	attrReplays     = "dlq-replays"
)

// cut is the value of dlq-payload for the beginning of a record.
const cut = "cut"

// attributes are those of a letter.
func attributes(l *deadletter.Letter) map[string]string {
	kind, _ := l.Payload()
	payload := string(kind)
	if l.Cut {
		payload = cut
	}
	a := map[string]string{
		attrConnector: l.Connector, attrDestination: l.Destination, attrError: l.Reason,
		attrTimestamp: l.Time.UTC().Format(time.RFC3339Nano), attrSubtask: strconv.Itoa(l.Lane),
		attrJob: l.Job, attrFile: l.File, attrSplit: l.Split, attrPosition: strconv.FormatInt(l.Position, 10), attrPayload: payload,
	}
	if l.Line > 0 {
		a[attrLine] = strconv.FormatInt(l.Line, 10)
	}
	if l.Replays > 0 {
		a[attrReplays] = strconv.Itoa(l.Replays)
	}
	if len(l.Context) <= maxAttributeBytes && utf8.ValidString(l.Context) {
		a[attrContext] = l.Context
	}
	for name, value := range a {
		if a[name] = fit(value); value == "" {
			delete(a, name)
		}
	}
	return a
}

// fit makes text that an attribute can hold: valid UTF-8 of at most 1024 bytes.
func fit(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= maxAttributeBytes {
		return s
	}
	end := maxAttributeBytes - len("...")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

// errForeign is about a message that no queue of dead letters has published.
var errForeign = errors.New("the message has no attribute " + attrConnector)

// letter reads a message.
func letter(data []byte, a map[string]string) (deadletter.Letter, error) {
	l := deadletter.Letter{
		Connector: a[attrConnector], Destination: a[attrDestination], Reason: a[attrError], Job: a[attrJob],
		File: a[attrFile], Split: a[attrSplit], Context: a[attrContext], Cut: a[attrPayload] == cut,
	}
	if l.Connector == "" {
		return l, errForeign
	}
	var errs []error
	number := func(name string) (n int64) {
		if text := a[name]; text != "" {
			var err error
			if n, err = strconv.ParseInt(text, 10, 64); err != nil {
				errs = append(errs, fmt.Errorf("the attribute %s is no number", name))
			}
		}
		return n
	}
	l.Line, l.Position, l.Lane, l.Replays = number(attrLine), number(attrPosition), int(number(attrSubtask)), int(number(attrReplays))
	var err error
	if l.Time, err = time.Parse(time.RFC3339Nano, a[attrTimestamp]); err != nil {
		errs = append(errs, fmt.Errorf("the attribute %s is no time", attrTimestamp))
	}
	switch deadletter.Kind(a[attrPayload]) {
	case deadletter.Record, cut:
		l.SetRecord(data)
	case deadletter.Row:
		l.RowBytes = data
	}
	return l, errors.Join(errs...)
}
