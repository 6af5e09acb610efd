package ops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/node"
)

// levels reads a node's levels whenever Prometheus collects them.
type levels struct{ node *node.Node }

// timeout is the time limit for the node's answer.
const timeout = time.Second

func level(subsystem, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("jamq", subsystem, name), help, labels, nil)
}

// The help texts name the unit: how many of what, a time in seconds, or a ratio.
// Counters count since the process started.
var (
	nodeAlive = level("node", "alive", "1 while the node works; 0 if it must be started again, for the reason that /healthz has.")
	nodeReady = level("node", "ready", "1 while the node is ready for transactions; otherwise 0, for the reason that /readyz has.")

	poolTransactions = level("txpool", "transactions", "Number of transactions in the pool, by state: pending can run, parked cannot pay the base fee, queued waits behind a gap.", "state")
	poolBytes        = level("txpool", "bytes", "Approximate memory of the transactions in the pool, in bytes, by state as in jamq_txpool_transactions.", "state")
	poolUsed         = level("txpool", "used_ratio", "Share of the pool's capacity that pending transactions take, by number or by size; 1 is full.")
	poolExempt       = level("txpool", "exempt", "Number of transactions that came back from failed blocks or a restart, and that no cap evicts.")
	poolLocked       = level("txpool", "locked", "Number of locked transactions: a block is being made of them.")
	poolSenders      = level("txpool", "senders", "Number of accounts with state in the pool.")
	poolFloor        = level("txpool", "floor_wei", "Minimum price of an executable transaction, in wei per gas.")
	poolBaseFee      = level("txpool", "base_fee_wei", "Base fee of the next block, in wei per gas.")
	poolSurge        = level("txpool", "surge_ratio", "Factor on the floor for newcomers while the pool fills up; 1 is none.")
	poolWatermark    = level("txpool", "watermark_wei", "Minimum price of admission now, in wei per gas.")

	queueBundles   = level("bundlequeue", "bundles", "Number of bundles in the queue now, by state.", "state")
	queueDepth     = level("bundlequeue", "depth", "Maximum number of bundles that may wait in the queue.")
	queueNext      = level("bundlequeue", "next", "Number of the next rollup block that enters the queue.")
	queueCount     = level("bundlequeue", "events_total", "Number of events of bundles and packages, by event.", "event")
	queueEntered   = level("bundlequeue", "entered_total", "Number of times that a bundle entered a state, by state.", "state")
	builderUp      = level("submit", "running", "1 while the builder runs; otherwise 0.")
	builderHeld    = level("submit", "held", "1 while a restarted builder waits for newer JAM blocks; otherwise 0.")
	builderPaused  = level("submit", "paused", "1 while a fatal error keeps the builder from building and sending; otherwise 0.")
	builderWaits   = level("submit", "waiting_seconds", "Time that the first block without a usable package has waited, in seconds; 0 if none waits.")
	builderDelayed = level("submit", "delayed", "1 if jamq_submit_waiting_seconds is above the alarm, which is 20 slots; otherwise 0.")
	builderBusy    = level("submit", "in_flight", "Number of calls under way, by kind: build makes a package, send gives it to a guarantor.", "kind")
	builderFails   = level("submit", "failures_in_a_row", "Number of builds or sends that failed since the last success, by kind.", "kind")
	builderFatal   = level("submit", "fatal_total", "Number of builds and sends that failed with a fatal error, which needs an operator.")
	builderBehind  = level("submit", "clock_behind_seconds", "Estimated lag of this machine's clock behind the chain's, in seconds.")
	builderImport  = level("submit", "last_import_timestamp_seconds", "Time of the last imported JAM block, in seconds since 1970; 0 before the first.")
	builderSend    = level("submit", "last_send_timestamp_seconds", "Time when a guarantor last took a package, in seconds since 1970; 0 before the first.")
	builderFollows = level("submit", "follows", "1 while another replica leads and this one follows it; otherwise 0.")
	clusterEpoch   = level("cluster", "epoch", "Number of times that the lead of the replicas has changed hands; 0 without a cluster.")
	clusterLag     = level("cluster", "lag_writes", "Number of writes to the log that this replica had not read when it last looked.")
	heads          = level("canonical", "head", "Number of the rollup block that a block tag of Ethereum names, by tag.", "tag")
	jamSlot        = level("jam", "slot", "Slot of the best JAM block, as a number.")
	jamSlotLength  = level("jam", "slot_length_seconds", "Length of a JAM slot, in seconds.")
	feedFailures   = level("jam", "feed_failures", "Number of attempts to catch up with the JAM node that failed since the last success.")
	feedNodes      = level("jam", "feed_nodes", "Number of JAM nodes to which the feed is connected.")
	stateRoots     = level("statedb", "roots", "Number of states in memory.")
	blockReplaced  = level("node", "blocks_replaced_total", "Number of executed blocks that failed on JAM and were executed again in other blocks.")
)

// Describe implements prometheus.Collector. It sends nothing, because the set
// of metrics depends on the node.
func (l *levels) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. A node that has stopped reports only
// that it has.
func (l *levels) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	total := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	now, err := l.node.Levels(ctx)
	gauge(nodeAlive, yes(l.node.Alive() == nil))
	gauge(nodeReady, yes(l.node.Ready() == nil))
	gauge(builderUp, yes(now.Builder.Running))
	if err != nil {
		return
	}
	pool(now, gauge)
	queue(now, gauge, total)
	recordBuilder(now, gauge, total)
	gauge(clusterEpoch, float64(now.Replicas.Epoch))
	gauge(clusterLag, float64(now.Lag))
	h := now.Heads
	for tag, number := range map[string]uint64{"pending": h.Pending.Number, "latest": h.Latest.Number, "safe": h.Safe.Number, "finalized": h.Finalized.Number} {
		gauge(heads, float64(number), tag)
	}
	gauge(jamSlot, float64(now.JAMSlot))
	gauge(jamSlotLength, now.SlotLength.Seconds())
	gauge(feedFailures, float64(now.Feed.Failures))
	gauge(feedNodes, float64(now.Feed.Nodes))
	gauge(stateRoots, float64(now.Roots))
	total(blockReplaced, now.Replaced)
}

type (
	gauge func(d *prometheus.Desc, v float64, labels ...string)
	total func(d *prometheus.Desc, v uint64, labels ...string)
)

func pool(now node.Levels, gauge gauge) {
	s := now.Pool
	for state, n := range map[string]int{"pending": s.Pending, "parked": s.Parked, "queued": s.Queued} {
		gauge(poolTransactions, float64(n), state)
	}
	for state, n := range map[string]uint64{"pending": s.PendingBytes, "parked": s.ParkedBytes, "queued": s.QueuedBytes} {
		gauge(poolBytes, float64(n), state)
	}
	gauge(poolUsed, now.PoolUsed)
	gauge(poolExempt, float64(s.Exempt))
	gauge(poolLocked, float64(s.Locked))
	gauge(poolSenders, float64(s.Senders))
	gauge(poolFloor, float64(s.Floor))
	gauge(poolBaseFee, float64(s.BaseFee))
	gauge(poolSurge, float64(s.Surge)/1000)
	gauge(poolWatermark, float64(s.Watermark))
}

func queue(now node.Levels, gauge gauge, total total) {
	s := now.Queue
	for state := range bundlequeue.State(bundlequeue.NumStates) {
		gauge(queueBundles, float64(s.Count[state]), state.String())
		total(queueEntered, s.Totals.Entered(state), state.String())
	}
	gauge(queueDepth, float64(s.Depth))
	gauge(queueNext, float64(s.Next))
	t := s.Totals
	for event, n := range map[string]uint64{
		"enqueued": t.Enqueued, "built": t.Built, "useless": t.Useless, "sends": t.Sends, "died": t.Died, "builds_failed": t.BuildsFailed, "sends_failed": t.SendsFailed,
		"duplicate_guarantee_rejected": t.DuplicateGuaranteeRejected, "duplicate_accumulate_rejected": t.DuplicateAccumulateRejected,
		"accumulated_after_failed": t.AccumulatedAfterFailed, "non_winning_versions_canceled": t.NonWinningVersionsCanceled,
	} {
		total(queueCount, n, event)
	}
}

func recordBuilder(now node.Levels, gauge gauge, total total) {
	h := now.Builder
	gauge(builderFollows, yes(h.Follows))
	gauge(builderHeld, yes(h.Held))
	gauge(builderPaused, yes(h.Paused != nil))
	waits := 0.0
	if !h.Waiting.Since.IsZero() {
		waits = time.Since(h.Waiting.Since).Seconds()
	}
	gauge(builderWaits, waits)
	gauge(builderDelayed, yes(h.Delayed))
	gauge(builderBusy, float64(h.Builds), "build")
	gauge(builderBusy, float64(h.Sends), "send")
	gauge(builderFails, float64(h.BuildFailures), "build")
	gauge(builderFails, float64(h.SendFailures), "send")
	total(builderFatal, uint64(h.Fatal))
	gauge(builderBehind, h.Behind.Seconds())
	gauge(builderImport, seconds(h.LastImport))
	gauge(builderSend, seconds(h.LastSend))
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds returns a time in seconds since 1970, or 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
