package structrow

// Options says how a struct becomes a schema. The zero value is the default.
type Options struct {
	// DeriveRequired makes columns REQUIRED that cannot be NULL: fields that are no pointer, no Null type and no slice,
	// and are not tagged nullable. REQUIRED columns can be relaxed later, but never added to a table that exists.
	DeriveRequired bool
}
