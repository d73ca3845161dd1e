// Package load carries out load jobs: it reads files, settles the schema that their rows are to have, and makes the batches of
// one write. It changes no table.
package load
