// Package fault makes a local BigQuery fail on purpose, between any two of its steps.
//
// A Rule is a match, a phase and an action. The service asks Rules.At in each phase of each call; rules that match there fire
// in the order they were added. All random choices come from one seed, in the order of the questions.
package fault
