package localbq_test

func serveAsChild() bool { return false }
