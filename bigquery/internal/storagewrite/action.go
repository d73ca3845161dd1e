package storagewrite

// action is what a verdict asks for.
type action uint8

const (
	actionFail        action = iota // end the writer
	actionRetry                     // new handle, same rows
	actionRoute                     // hand the refused rows to the failure handler, go on with the others
	actionCreateTable               // create the table, then as retry
	actionReconcile                 // change the table to take the rows, then as retry
)

// allowed is what a repair may do about tables.
type allowed struct {
	create bool // tables that do not exist are created
	update bool // tables that exist are changed
}

// choose is the one place where a verdict becomes an action.
func choose(v *verdict, may allowed) action {
	switch {
	case may.create && v.missing():
		return actionCreateTable
	case may.update && v.kind == KindSchemaMismatch:
		return actionReconcile
	}
	switch v.kind {
	case KindRows:
		return actionRoute
	case KindTransient, KindStaleStream, KindDeadHandle:
		return actionRetry
	}
	return actionFail
}
