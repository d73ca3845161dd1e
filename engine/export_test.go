package engine

// SealForTest makes a whole frame of another format version.
func SealForTest(version uint32, payload []byte) []byte { return seal(version, payload) }
