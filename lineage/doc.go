// Package lineage tells what a run reads and writes, as events of OpenLineage (https://openlineage.io, version 2-0-2 of its
// core), to a file or a server.
//
// An Emitter never fails a run and never holds it up: events wait in a short queue, are tried again when they fail in
// passing, and are given up with a warning. The newest event that a run is under way stands for those before it.
package lineage
