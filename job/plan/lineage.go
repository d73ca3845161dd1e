package plan

import (
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/lineage"
)

// datasets are what the events of a run name: what the job file tells, and with placeholders the tables that were met.
func datasets(p *job.Parsed, plan *Plan) (Lineage, error) {
	inputs, outputs, err := p.Datasets()
	if err != nil {
		return Lineage{}, err
	}
	if len(outputs) == 0 {
		for _, t := range plan.Tables {
			outputs = append(outputs, lineage.NewTable(t.Destination.Project, t.Destination.Dataset, t.Destination.Table))
		}
	}
	return Lineage{Inputs: named(inputs), Outputs: named(outputs)}, nil
}

func named(all []lineage.Dataset) []Dataset {
	out := make([]Dataset, len(all))
	for i, d := range all {
		out[i] = Dataset{d.Namespace, d.Name}
	}
	return out
}
