package objects

import "github.com/millrace-dev/millrace/localbq/internal/refusal"

// Conditions are what must hold for a call to do its work; nil demands nothing.
type Conditions struct {
	// Generation is the generation that must be there, 0 for none at all; NotGeneration is the one that must not.
	Generation, NotGeneration *int64
	// Metageneration and NotMetageneration are the same for the version of the attributes.
	Metageneration, NotMetageneration *int64
	// Also, if not nil, is asked in addition about what is there. An upload cannot keep it.
	Also func(generation, metageneration int64) error `json:"-"`
}

// check holds conditions to what is there; nil is no object. Equal numbers in a condition that excludes them are notModified,
// which a read answers with 304 and a change with 412.
func (c Conditions) check(o *Object) error {
	var generation, metageneration int64
	if o != nil {
		generation, metageneration = o.Generation, o.Metageneration
	}
	return c.compare(o != nil, generation, metageneration)
}

func (c Conditions) compare(there bool, generation, metageneration int64) error {
	switch {
	case c.Generation != nil && *c.Generation != generation:
		return unmet("ifGenerationMatch")
	case c.Metageneration != nil && (!there || *c.Metageneration != metageneration):
		return unmet("ifMetagenerationMatch")
	case c.NotGeneration != nil && *c.NotGeneration == generation:
		return unmet("ifGenerationNotMatch")
	case c.NotMetageneration != nil && there && *c.NotMetageneration == metageneration:
		return unmet("ifMetagenerationNotMatch")
	case c.Also != nil:
		return c.Also(generation, metageneration)
	}
	return nil
}

func unmet(condition string) error {
	return &refusal.Error{
		Reason: refusal.ConditionNotMet, Location: condition,
		Message: "At least one of the pre-conditions you specified did not hold.",
	}
}
