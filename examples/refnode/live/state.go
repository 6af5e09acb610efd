package live

import (
	"github.com/jamq/jamq"
)

// State is the state of a node as the page and the terminal show it.
type State struct {
	// Node describes the node.
	Node Info `json:"node"`
	// Flow counts the transactions at each stage.
	Flow Flow `json:"flow"`
	// Heads are the heads of the rollup.
	Heads Heads `json:"heads"`
	// Bundles are the rollup's blocks on their way to JAM.
	Bundles Bundles `json:"bundles"`
	// Chain is the JAM chain.
	Chain Chain `json:"chain"`
	// Fees are samples of the pool's prices, oldest first. A sample holds until
	// the next one.
	Fees []Fee `json:"fees"`
	// Events are the most recent events, newest first.
	Events []Event `json:"events"`
	// Lab holds the fault injection settings, or nil if there is no lab.
	Lab *Lab `json:"lab"`
	// Cluster describes the replicas of the node, or is nil if it has none.
	Cluster *Cluster `json:"cluster"`
}

// Info describes the node.
type Info struct {
	// ChainID is the rollup's chain id, in decimal.
	ChainID string `json:"chainId"`
	// JAM describes the JAM chain in words. SlotMillis is the length of its
	// slots in milliseconds, and Cores the number of its cores.
	JAM        string `json:"jam"`
	SlotMillis int64  `json:"slotMillis"`
	Cores      int    `json:"cores"`
}

// Flow counts transactions by stage. Sent and Finalized count since the node
// started. Rate is the number of transactions that became final per second,
// over the last five seconds. The other fields count the transactions that are
// at that stage now.
type Flow struct {
	Sent        uint64  `json:"sent"`
	Pool        int     `json:"pool"`
	Queue       int     `json:"queue"`
	Cores       int     `json:"cores"`
	Accumulated int     `json:"accumulated"`
	Finalized   uint64  `json:"finalized"`
	Rate        float64 `json:"rate"`
}

// Heads are the numbers of the rollup blocks with these tags.
type Heads struct {
	Pending   uint64 `json:"pending"`
	Latest    uint64 `json:"latest"`
	Safe      uint64 `json:"safe"`
	Finalized uint64 `json:"finalized"`
}

// Bundles are the bundles that are on their way, and some final ones.
type Bundles struct {
	// Rows are at most 24 bundles, newest first. More is the number of newer
	// bundles that are not in Rows.
	Rows []Bundle `json:"rows"`
	More int      `json:"more"`
}

// Bundle is a rollup block on its way to JAM.
type Bundle struct {
	Number uint64 `json:"n"`
	Txs    int    `json:"txs"`
	// State is its state on the best chain, a name of bundlequeue.State.
	State string `json:"state"`
	// Versions are its packages, oldest first, including a version that still
	// has to be built.
	Versions []Version `json:"versions"`
}

// Version is a package of a bundle, or the place of one that is not built yet.
type Version struct {
	Version int `json:"v"`
	// Core is the core that it was last sent to, and Sends the number of
	// submissions.
	Core  jamq.CoreIndex `json:"core"`
	Sends int            `json:"sends"`
	// Package is the beginning of the package hash; empty before the package is
	// built.
	Package string `json:"pkg"`
	// Marks are the states that it entered, in order. After a reorg a state may
	// be followed by an earlier one.
	Marks []Mark `json:"marks"`
	// Dead is the reason why it can never be accumulated; empty while it can.
	Dead string `json:"dead,omitempty"`
}

// Mark records the slot in which a state began.
type Mark struct {
	State string    `json:"s"`
	Slot  jamq.Slot `json:"at"`
}

// Chain holds the newest blocks of the JAM chain.
type Chain struct {
	// Slot is the current slot, and First the oldest slot shown.
	Slot  jamq.Slot `json:"slot"`
	First jamq.Slot `json:"first"`
	// Blocks are the blocks from First on, by slot. A slot without a block was
	// skipped.
	Blocks []Block `json:"blocks"`
	// Best and Final are the slots of the best and the finalized block.
	Best  jamq.Slot `json:"best"`
	Final jamq.Slot `json:"final"`
	// Cores are the cores with reports on the best chain, at most 8.
	Cores []Core `json:"cores"`
}

// Block is a JAM block.
type Block struct {
	ID     string    `json:"id"`
	Parent string    `json:"parent"`
	Slot   jamq.Slot `json:"slot"`
	// Lane is 0 on the best chain, and 1 or more on a branch.
	Lane  int  `json:"lane"`
	Final bool `json:"final"`
	// Reports, Accumulated and Verdicts count the block's contents: guaranteed
	// reports, accumulated packages and negative verdicts.
	Reports     int `json:"reports"`
	Accumulated int `json:"accumulated"`
	Verdicts    int `json:"verdicts"`
}

// Core lists the reports that occupied a core.
type Core struct {
	Core    jamq.CoreIndex `json:"core"`
	Reports []Report       `json:"reports"`
}

// Report is a package that occupied a core, from the slot of its report.
type Report struct {
	From jamq.Slot `json:"from"`
	// To is the slot in which it left the core; 0 while it is there.
	To jamq.Slot `json:"to"`
	// Number and Version identify the package. Number is 0 for a package of
	// another service.
	Number  uint64 `json:"n"`
	Version int    `json:"v"`
	// End is the cause of its leaving: "available", "verdict" or "timeout";
	// empty while it is there.
	End string `json:"end"`
}

// Fee is a sample of the pool's prices.
type Fee struct {
	// At is the time of the sample, in milliseconds since 1970.
	At int64 `json:"at"`
	// Base is the base fee, and Floor the minimum price on top of it, in gwei.
	// Surge is the factor by which newcomers pay more than the floor. Full is
	// the occupancy of the pool, 0 to 1.
	Base  float64 `json:"base"`
	Floor float64 `json:"floor"`
	Surge float64 `json:"surge"`
	Full  float64 `json:"full"`
}

// Event is one line of the event log.
type Event struct {
	// ID numbers the events, starting with 1.
	ID uint64 `json:"id"`
	// At is the time of the event in milliseconds since 1970, and Slot its JAM
	// slot.
	At   int64     `json:"at"`
	Slot jamq.Slot `json:"slot"`
	// Kind is one of the Kind constants. Text describes the event.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of events.
const (
	// KindLatest and KindFinal mean that a head moved forward.
	KindLatest = "latest"
	KindFinal  = "final"
	// KindBack means that a reorganization undid something.
	KindBack = "back"
	// KindDead means that a package can never be accumulated. KindFailed means
	// that the queue gave up a bundle.
	KindDead   = "dead"
	KindFailed = "failed"
	// KindBuilt means that another version of a bundle is being built.
	KindBuilt = "built"
	// KindLab means that a user injected or removed a fault.
	KindLab = "lab"
)

// Lab holds the current settings of fault injection.
type Lab struct {
	// Loss is the share of submissions that are lost, and Skip the share of
	// slots without a block, 0 to 1. Latency is the number of slots from a
	// submission to its report.
	Loss    float64 `json:"loss"`
	Skip    float64 `json:"skip"`
	Latency int     `json:"latency"`
	// FinalityStopped means that no further block becomes final.
	FinalityStopped bool `json:"finalityStopped"`
	// MaxLatency and MaxSkip are the maximum values of Latency and Skip.
	// MaxDepth is the maximum depth of a reorg in blocks.
	MaxLatency int     `json:"maxLatency"`
	MaxSkip    float64 `json:"maxSkip"`
	MaxDepth   int     `json:"maxDepth"`
}

// Cluster describes the replicas of a node.
type Cluster struct {
	// Epoch counts the leads.
	Epoch uint64 `json:"epoch"`
	// Replicas are the leader, and then the followers in the order of their addresses.
	Replicas []Replica `json:"replicas"`
	// Kill is true if users may kill replicas.
	Kill bool `json:"kill"`
}

// Replica is one of several nodes with the same rollup.
type Replica struct {
	// Address is the URL of its RPC and of its page.
	Address string `json:"address"`
	// Leads is true for the replica that leads, or has led last. Self is true for the one that
	// serves this state.
	Leads bool `json:"leads"`
	Self  bool `json:"self"`
	// Lag is the number of writes that a follower had not read when it was last seen. Away is
	// true if that is longer ago than a lease.
	Lag  uint64 `json:"lag"`
	Away bool   `json:"away"`
}
