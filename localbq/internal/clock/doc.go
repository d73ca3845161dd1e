// Package clock is the one source of time of a local BigQuery: the machine's, the machine's at another speed, or one that
// a test moves by hand.
package clock
