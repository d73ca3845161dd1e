package pubsubqueue

import "google.golang.org/api/option"

// With has the queue's clients opened with more options.
func (q *Queue) With(more ...option.ClientOption) *Queue {
	q.more = more
	return q
}

// Fit is what becomes of an attribute's text.
var Fit = fit
