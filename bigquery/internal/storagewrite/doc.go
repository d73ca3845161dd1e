// Package storagewrite writes rows through the Storage Write API. It takes encoded rows and counts; what a record is
// ends in the package above.
//
// # Layers
//
//	Writer        one per lane, on the lane's goroutine: batches, failed rows; delivery is one of
//	  toDefault     default streams: in-flight registry, repairs
//	    repair        pure state machine: what to do about a failed batch, step by step
//	    pool          shared by all lanes of the process that write to one place with the same options
//	  toBuffered    a stream for each destination: offsets, states, promises
//	    recovery      pure state machine: what to do about a failed append, and about the first one after a restore
//	    creation      pure state machine: how a stream comes to be, with its table
//	    ownHandle     one connection for each stream
//	      conn      one AppendRows stream at a time: a sender and a receiver goroutine
//	        pipeline  pure state machine: what was sent, what is answered, what is sent again
//	Committer     flushes streams up to what was promised
//
// The connection layer repeats appends that failed in passing, out of the writer's sight. What it cannot mend reaches the
// writer as the result of an append; the writer classifies it (classify.go), chooses an action (action.go) and runs the
// repair or the recovery. Everything a failure leads to happens on the lane's goroutine, in the order of sending, so outcomes do not
// depend on timing.
//
// Rows come one by one, as messages, or as rows of Arrow batches (columns.go), parts of which are sent as they are.
//
// # Memory
//
// A destination holds one pending batch of at most MaxAppendBytes plus one row. A lane holds at most MaxBufferedBytes in
// pending and unanswered batches together, plus one batch; at half of that it sends what is pending, at all of it it waits
// for answers. The memory behind a pending batch may be up to four times its rows. Where failed records are to carry
// their original, the originals of buffered rows come on top.
//
// A stream of the lane's own has two goroutines while it is connected and one while it is not, and a window of 1000 appends and
// 100 MiB within the lane's bound. One client carries 90 of them.
//
// # Lock order
//
// registry, then service, then pool, then conn, then window. None is held across a call to the service, a sleep or a
// wait.
package storagewrite
