package lineage

import "github.com/millrace-dev/millrace/stream"

var (
	eventsSent = stream.Instrument{Name: "millrace.lineage.events_sent", Unit: "1",
		Help: "Lineage events written to the file or taken by the server (label to: file or http)."}
	eventsLost = stream.Instrument{Name: "millrace.lineage.events_lost", Unit: "1",
		Help: "Lineage events given up, those not counted that a later one stands for (label to: file or http)."}
)

// Instruments lists what is counted. Each series carries the label to.
func Instruments() []stream.Instrument { return []stream.Instrument{eventsSent, eventsLost} }
