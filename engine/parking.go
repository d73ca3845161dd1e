package engine

// parking is where lanes without a split wait, in the order they came: first those that have not been served, then,
// once the enumerator had none for them, until it wakes the engine.
type parking struct {
	asking []int
	parked []int
	ended  int // how many lanes will get no split any more
}

func (p *parking) ask(lane int) { p.asking = append(p.asking, lane) }

// park lets the first that asks wait for a wake.
func (p *parking) park() { p.parked = append(p.parked, p.take()) }

// end is for the first that asks: it will get no more.
func (p *parking) end() int { p.ended++; return p.take() }

// take removes the first that asks.
func (p *parking) take() int {
	lane := p.asking[0]
	p.asking = p.asking[1:]
	return lane
}

// wake lets those that wait ask again, before all others: they came first.
func (p *parking) wake() { p.asking, p.parked = append(p.parked, p.asking...), nil }
