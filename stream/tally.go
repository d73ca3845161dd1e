package stream

// Tally counts what became of records. It is the proof that nothing is lost silently: at every barrier, and at the end,
//
//	Written + DeadLettered + Skipped + Failed = Read
//
// Read counts input rows, and one more for every record beyond the first that a row or a Func gave.
type Tally struct {
	Read         int64
	Written      int64 // durable at the destination, or prepared for the commit that makes it so
	DeadLettered int64 // taken by a failure handler that let the job go on
	Skipped      int64 // dropped on purpose: rows without records, ErrSkip, serializers that skip
	Failed       int64 // ended the attempt
	Bytes        int64 // encoded bytes of the written ones
}

// Add adds o to t.
func (t *Tally) Add(o Tally) {
	t.Read += o.Read
	t.Written += o.Written
	t.DeadLettered += o.DeadLettered
	t.Skipped += o.Skipped
	t.Failed += o.Failed
	t.Bytes += o.Bytes
}

// Lost is how many records the tally cannot account for: 0 after a Flush, and the number still in a writer's buffers
// before.
func (t Tally) Lost() int64 { return t.Read - t.Written - t.DeadLettered - t.Skipped - t.Failed }

// Tallier is a Writer that says what became of the records it was given. After Flush returned nil, Written +
// DeadLettered + Skipped is the number of records written to it. Read stays 0: the engine counts that.
type Tallier interface {
	// Tally is called from the lane's goroutine.
	Tally() Tally
}
