package live

import (
	"github.com/jamq/jamq"
)

// State is what there is to show.
type State struct {
	// Node says what node this is.
	Node Info `json:"node"`
	// Flow counts transactions on their way.
	Flow Flow `json:"flow"`
	// Heads are the rollup's.
	Heads Heads `json:"heads"`
	// Bundles are the rollup's blocks on their way to JAM.
	Bundles Bundles `json:"bundles"`
	// Chain is the JAM chain.
	Chain Chain `json:"chain"`
	// Fees are the pool's prices over time, oldest first. A sample holds until the next.
	Fees []Fee `json:"fees"`
	// Events are what happened last, newest first.
	Events []Event `json:"events"`
	// Lab is what can be broken, or nil.
	Lab *Lab `json:"lab"`
}

// Info says what node this is.
type Info struct {
	// ChainID is the rollup's.
	ChainID string `json:"chainId"`
	// JAM says in words which JAM chain it works on, SlotMillis how long its slots are, Cores how many cores it has.
	JAM        string `json:"jam"`
	SlotMillis int64  `json:"slotMillis"`
	Cores      int    `json:"cores"`
}

// Flow counts transactions on their way. Sent and Finalized count since the node started, Rate is how many became final per second lately. The others
// are how many are there now.
type Flow struct {
	Sent        uint64  `json:"sent"`
	Pool        int     `json:"pool"`
	Queue       int     `json:"queue"`
	Cores       int     `json:"cores"`
	Accumulated int     `json:"accumulated"`
	Finalized   uint64  `json:"finalized"`
	Rate        float64 `json:"rate"`
}

// Heads are the numbers of the rollup blocks that the tags name.
type Heads struct {
	Pending   uint64 `json:"pending"`
	Latest    uint64 `json:"latest"`
	Safe      uint64 `json:"safe"`
	Finalized uint64 `json:"finalized"`
}

// Bundles are the newest bundles.
type Bundles struct {
	// Rows are at most shownBundles, newest first; More are newer ones that wait.
	Rows []Bundle `json:"rows"`
	More int      `json:"more"`
}

// Bundle is a rollup block on its way.
type Bundle struct {
	Number uint64 `json:"n"`
	Txs    int    `json:"txs"`
	// State is where it stands on the best chain, by bundlequeue's names.
	State string `json:"state"`
	// Versions are its packages, oldest first, with those that wait to be built.
	Versions []Version `json:"versions"`
}

// Version is a package of a bundle, or the wait for one.
type Version struct {
	Version int `json:"v"`
	// Core is where it was sent last, Sends how often.
	Core  jamq.CoreIndex `json:"core"`
	Sends int            `json:"sends"`
	// Package is the beginning of its hash, empty before it is built.
	Package string `json:"pkg"`
	// Marks are the states that it entered, in order. A reorg may take it back.
	Marks []Mark `json:"marks"`
	// Dead says why it can never be accumulated; empty while it can.
	Dead string `json:"dead,omitempty"`
}

// Mark says that a state began in a slot.
type Mark struct {
	State string    `json:"s"`
	Slot  jamq.Slot `json:"at"`
}

// Chain is the end of the JAM chain.
type Chain struct {
	// Slot is the current one, First the oldest that is shown.
	Slot  jamq.Slot `json:"slot"`
	First jamq.Slot `json:"first"`
	// Blocks are those from First on, by slot. A slot without one was skipped.
	Blocks []Block `json:"blocks"`
	// Best and Final are the slots of the heads.
	Best  jamq.Slot `json:"best"`
	Final jamq.Slot `json:"final"`
	// Cores are the cores with reports on the best chain; at most shownCores of them.
	Cores []Core `json:"cores"`
}

// Block is a JAM block.
type Block struct {
	ID     string    `json:"id"`
	Parent string    `json:"parent"`
	Slot   jamq.Slot `json:"slot"`
	// Lane is 0 on the best chain, and 1 or more beside it.
	Lane  int  `json:"lane"`
	Final bool `json:"final"`
	// Reports, Accumulated and Verdicts count what it holds.
	Reports     int `json:"reports"`
	Accumulated int `json:"accumulated"`
	Verdicts    int `json:"verdicts"`
}

// Core is what was on a core.
type Core struct {
	Core    jamq.CoreIndex `json:"core"`
	Reports []Report       `json:"reports"`
}

// Report is a package on a core, from the slot of its report on.
type Report struct {
	From jamq.Slot `json:"from"`
	// To is the slot in which it left, 0 while it is there.
	To jamq.Slot `json:"to"`
	// Number and Version name the package; 0 for another rollup's.
	Number  uint64 `json:"n"`
	Version int    `json:"v"`
	// End is how it left: "available", "verdict" or "timeout"; empty while it is there.
	End string `json:"end"`
}

// Fee is a sample of the pool's prices.
type Fee struct {
	// At is when, in milliseconds since 1970.
	At int64 `json:"at"`
	// Base is the base fee and Floor the least price besides, in gwei; Surge by which factor newcomers pay more than the floor; Full the occupancy of
	// the pool, 0 to 1.
	Base  float64 `json:"base"`
	Floor float64 `json:"floor"`
	Surge float64 `json:"surge"`
	Full  float64 `json:"full"`
}

// Event is something that happened.
type Event struct {
	// ID counts events.
	ID uint64 `json:"id"`
	// At is when, in milliseconds since 1970, Slot the JAM slot.
	At   int64     `json:"at"`
	Slot jamq.Slot `json:"slot"`
	// Kind is one of the kinds below.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of events.
const (
	// KindLatest and KindFinal: heads moved on.
	KindLatest = "latest"
	KindFinal  = "final"
	// KindBack: a reorganization took something back.
	KindBack = "back"
	// KindDead: a package can never be accumulated. KindFailed: a bundle was given up.
	KindDead   = "dead"
	KindFailed = "failed"
	// KindBuilt: another version of a bundle is made.
	KindBuilt = "built"
	// KindLab: somebody broke or repaired something.
	KindLab = "lab"
)

// Lab is what can be broken, as it is set now.
type Lab struct {
	// Loss and Skip are shares, 0 to 1. Latency is the slots from a submission to its report.
	Loss    float64 `json:"loss"`
	Skip    float64 `json:"skip"`
	Latency int     `json:"latency"`
	// FinalityStopped says that nothing becomes final.
	FinalityStopped bool `json:"finalityStopped"`
	// MaxLatency, MaxSkip and MaxDepth are the greatest values that are taken, MaxDepth that of a reorg in blocks.
	MaxLatency int     `json:"maxLatency"`
	MaxSkip    float64 `json:"maxSkip"`
	MaxDepth   int     `json:"maxDepth"`
}
