// Package storagewrite writes rows through the Storage Write API. It takes encoded rows and counts; what a record is
// ends in the package above.
//
// # Layers
//
//	Writer      one per lane, on the lane's goroutine: batches, in-flight registry, repairs, failed rows
//	  repair    pure state machine: what to do about a failed batch, step by step
//	  pool      shared by all lanes of the process that write to one place with the same options
//	    conn    one AppendRows stream at a time: a sender and a receiver goroutine
//	      pipeline  pure state machine: what was sent, what is answered, what is sent again
//
// The connection layer repeats appends that failed in passing, out of the writer's sight. What it cannot mend reaches the
// writer as the result of an append; the writer classifies it (classify.go), chooses an action (action.go) and runs the
// repair. Everything a failure leads to happens on the lane's goroutine, in the order of sending, so outcomes do not
// depend on timing.
//
// # Memory
//
// A destination holds one pending batch of at most MaxAppendBytes plus one row. A lane holds at most MaxBufferedBytes in
// pending and unanswered batches together, plus one batch; at half of that it sends what is pending, at all of it it waits
// for answers. The memory behind a pending batch may be up to four times its rows. Where failed records are to carry
// their original, the originals of buffered rows come on top.
//
// # Lock order
//
// registry, then service, then pool, then conn, then window. None is held across a call to the service, a sleep or a
// wait.
package storagewrite
