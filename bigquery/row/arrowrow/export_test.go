package arrowrow

// What tests of the package share with those from outside, which may use what imports it.
var (
	DrawnLayout = drawn
	ArrowSchema = arrowSchema
	BuildBatch  = build
	Plain       = plain
	Tame        = tame
)
