// Package restcall repeats calls of the BigQuery REST service that fail in passing, and says what an answer means. The generated
// client repeats none by itself.
package restcall
