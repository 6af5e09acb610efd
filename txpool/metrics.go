package txpool

// Metrics is told what to count, with no lock held and from several goroutines at once. Nil funcs count nothing. What is a level and no
// event, such as the number of transactions, is in [Stats].
type Metrics struct {
	// Count adds one to a counter. Reason tells rejections and drops apart, in a few words out of a small set; else it is empty.
	Count func(counter Counter, reason string)
	// Observe adds a value to a histogram.
	Observe func(histogram Histogram, value float64)
}

// Counter names what is counted.
type Counter string

const (
	// CountAdmitted counts transactions that Add took, CountRejected, by reason, those that it did not.
	CountAdmitted Counter = "admitted"
	CountRejected Counter = "rejected"
	// CountDropped counts those that left, by reason, of which "pool full" is eviction; CountReplaced those replaced; CountIncluded
	// those in a committed bundle or a block.
	CountDropped  Counter = "dropped"
	CountReplaced Counter = "replaced"
	CountIncluded Counter = "included"
	// CountDrained counts those put into a lease, each time.
	CountDrained Counter = "drained"
)

// Histogram names what is measured.
type Histogram string

const (
	// AdmitSeconds is how long Add took, the sender's recovery with it; of a batch, each of its transactions counts alike.
	AdmitSeconds Histogram = "admit_seconds"
	// TxBytes is the encoding of an admitted transaction.
	TxBytes Histogram = "tx_bytes"
	// EvictionAgeSeconds is how old an evicted transaction was.
	EvictionAgeSeconds Histogram = "eviction_age_seconds"
)

func (m *Metrics) enabled() bool { return m.Count != nil || m.Observe != nil }

func (m *Metrics) count(counter Counter, reason string) {
	if m.Count != nil {
		m.Count(counter, reason)
	}
}

func (m *Metrics) observe(histogram Histogram, value float64) {
	if m.Observe != nil {
		m.Observe(histogram, value)
	}
}

// event counts what happened.
func (m *Metrics) event(e *Event) {
	switch {
	case e.Admitted:
		m.count(CountAdmitted, "")
		m.observe(TxBytes, float64(e.Tx.Size()))
	case e.Kind == Replaced:
		m.count(CountReplaced, "")
	case e.Kind == Included:
		m.count(CountIncluded, "")
	case e.Kind == Dropped:
		reason := label(e.Reason)
		m.count(CountDropped, reason)
		if reason == label(ErrPoolFull) {
			m.observe(EvictionAgeSeconds, e.Age.Seconds())
		}
	}
}
