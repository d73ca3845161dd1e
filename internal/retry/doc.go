// Package retry says how long to wait before trying again and for how often. It decides nothing about what is worth
// another try: that is the caller's classification of the failure.
package retry
