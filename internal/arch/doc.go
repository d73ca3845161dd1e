// Package arch holds the import rules of the module as data, and the test that holds the code to them. Changing a rule
// is a decision: write down why in docs/decisions.
package arch
