package txpool

// Metrics receives measurements. The pool calls the functions without its lock
// and from several goroutines concurrently. A nil function is not called.
// Levels, such as the number of transactions, are in [Stats].
type Metrics struct {
	// Count adds one to a counter. reason distinguishes rejections and drops by
	// a small set of texts; it is empty for other counters.
	Count func(counter Counter, reason string)
	// Observe adds a value to a histogram.
	Observe func(histogram Histogram, value float64)
}

// Counter is the name of a counter.
type Counter string

const (
	// CountAdmitted counts transactions that Add accepted.
	CountAdmitted Counter = "admitted"
	// CountRejected counts transactions that Add refused, by reason.
	CountRejected Counter = "rejected"
	// CountDropped counts dropped transactions by reason; "pool full" means
	// eviction.
	CountDropped Counter = "dropped"
	// CountReplaced counts replaced transactions.
	CountReplaced Counter = "replaced"
	// CountIncluded counts transactions in a block.
	CountIncluded Counter = "included"
	// CountDrained counts transactions each time a session takes them.
	CountDrained Counter = "drained"
)

// Histogram is the name of a histogram.
type Histogram string

const (
	// AdmitSeconds is the duration of an Add that admitted a transaction,
	// including the recovery of the sender. In a batch, each admitted
	// transaction counts with the duration of the whole batch.
	AdmitSeconds Histogram = "admit_seconds"
	// ReplaceSeconds is AdmitSeconds of those that replaced another transaction.
	ReplaceSeconds Histogram = "replace_seconds"
	// TxBytes is the size of the encoding of an admitted transaction.
	TxBytes Histogram = "tx_bytes"
	// EvictionAgeSeconds is the age of an evicted transaction.
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

// countEvent counts an event.
func (m *Metrics) countEvent(e *Event) {
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
