package storagewrite

// action is what a verdict asks for.
type action uint8

const (
	actionFail        action = iota // end the writer
	actionRetry                     // new handle, same rows
	actionRoute                     // hand the refused rows to the failure handler, go on with the others
	actionCreateTable               // create the table, then as retry
)

// choose is the one place where a verdict becomes an action.
func choose(v *verdict, createIfNeeded bool) action {
	if createIfNeeded && v.missing() {
		return actionCreateTable
	}
	switch v.kind {
	case KindRows:
		return actionRoute
	case KindTransient, KindStaleStream, KindDeadHandle:
		return actionRetry
	}
	return actionFail
}
