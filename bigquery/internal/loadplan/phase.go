package loadplan

import "fmt"

// Phase is a step of a plan that is complete, for all destinations, before the next one begins.
type Phase struct {
	Name  string // "loads", "copies of level 1", "final copies", "queries"
	Waves []Wave
}

// Wave is jobs that are all submitted before any of them is awaited. Its shares are in the order of the plan.
type Wave []Share

// Share is what a wave has for one destination, in order.
type Share struct {
	Part *Part
	Jobs []*Job
}

// Phases cuts a plan into what runs one after the other. Phases without jobs are left out.
func (p *Plan) Phases(lim Limits) []Phase {
	var phases []Phase
	add := func(name string, size int, of func(*Part) []*Job) {
		if waves := p.waves(size, of); waves != nil {
			phases = append(phases, Phase{Name: name, Waves: waves})
		}
	}
	add("loads", lim.LoadWave, func(p *Part) []*Job { return pointers(p.Loads) })
	for level := range p.levels() {
		add(fmt.Sprintf("copies of level %d", level+1), lim.LoadWave, func(p *Part) []*Job {
			if level < len(p.Levels) {
				return pointers(p.Levels[level])
			}
			return nil
		})
	}
	add("final copies", lim.LoadWave, func(p *Part) []*Job { return one(p.Final) })
	add("queries", lim.QueryWave, func(p *Part) []*Job { return one(p.Query) })
	return phases
}

func (p *Plan) levels() (most int) {
	for i := range p.Parts {
		most = max(most, len(p.Parts[i].Levels))
	}
	return most
}

// waves cuts the jobs of a phase, destination by destination, into pieces of one size.
func (p *Plan) waves(size int, of func(*Part) []*Job) (waves []Wave) {
	room := 0
	for i := range p.Parts {
		part := &p.Parts[i]
		for jobs := of(part); len(jobs) > 0; {
			if room == 0 {
				waves, room = append(waves, nil), size
			}
			n := min(room, len(jobs))
			last := &waves[len(waves)-1]
			*last = append(*last, Share{Part: part, Jobs: jobs[:n]})
			jobs, room = jobs[n:], room-n
		}
	}
	return waves
}

func pointers(jobs []Job) []*Job {
	out := make([]*Job, len(jobs))
	for i := range jobs {
		out[i] = &jobs[i]
	}
	return out
}

func one(job *Job) []*Job {
	if job == nil {
		return nil
	}
	return []*Job{job}
}
