package ops

import (
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/txpool"
)

// Metrics collects the metrics of all packages. Create it with New, put its
// Hooks into the node's configuration, and call Watch with the node.
type Metrics struct {
	registry *prometheus.Registry
	counters map[string]func(label string) prometheus.Counter
	times    map[string]prometheus.Histogram
}

// The buckets are seconds from 50 µs to 26 s, and bytes from 64 to a megabyte.
var (
	secondBuckets = prometheus.ExponentialBuckets(50e-6, 2, 20)
	byteBuckets   = prometheus.ExponentialBuckets(64, 2, 15)
)

// New returns metrics with the process's own collectors.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), counters: map[string]func(string) prometheus.Counter{}, times: map[string]prometheus.Histogram{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(buildInfo())
	m.counter("txpool", "admitted", "", "Number of transactions that were admitted to the pool.")
	m.counter("txpool", "replaced", "", "Number of transactions that another one with the same nonce replaced.")
	m.counter("txpool", "included", "", "Number of transactions that left the pool because a block includes them.")
	m.counter("txpool", "rejected", "reason", "Number of transactions that were refused, by reason.")
	m.counter("txpool", "dropped", "reason", "Number of transactions that left the pool without a block, by reason.")
	m.histogram("txpool", "admit_seconds", secondBuckets, "Time to admit a transaction, in seconds.")
	m.histogram("txpool", "tx_bytes", byteBuckets, "Size of admitted transactions, in bytes.")
	m.histogram("txpool", "eviction_age_seconds", secondBuckets, "Time that evicted transactions were in the pool, in seconds.")

	m.counter("submit", builder.CountBuilds, "result", "Number of packages that were built, by result: ok or failed.")
	m.counter("submit", builder.CountSends, "result", "Number of sends of packages, by result: ok or the class of the error.")
	m.counter("submit", builder.CountUseless, "reason", "Number of packages that were dead before they were sent, by reason.")
	m.counter("submit", builder.CountPauses, "cause", "Number of pauses of the builder after an error, by cause.")
	m.counter("submit", builder.CountEffects, "kind", "Number of effects that the queue returned, by kind.")
	m.histogram("submit", builder.BuildSeconds, secondBuckets, "Time to build a package, in seconds.")
	m.histogram("submit", builder.SendSeconds, secondBuckets, "Time to send a package to a guarantor, in seconds.")
	m.histogram("submit", builder.StepSeconds, secondBuckets, "Time of a step of the queue with its journal write, in seconds.")
	m.counter("statedb", statedb.CountCommitted, "", "Number of states that were committed.")
	m.counter("statedb", statedb.CountCanonical, "", "Number of moves of the canonical state.")
	m.counter("statedb", statedb.CountDiscarded, "", "Number of states that were discarded.")
	m.counter("statedb", statedb.CountDiskBytes, "", "Number of bytes that were written to the disk.")
	return m
}

func (m *Metrics) counter(subsystem, name, label, help string) {
	opts := prometheus.CounterOpts{Namespace: "jamq", Subsystem: subsystem, Name: name + "_total", Help: help}
	if label == "" {
		c := prometheus.NewCounter(opts)
		m.registry.MustRegister(c)
		m.counters[subsystem+"/"+name] = func(string) prometheus.Counter { return c }
		return
	}
	c := prometheus.NewCounterVec(opts, []string{label})
	m.registry.MustRegister(c)
	m.counters[subsystem+"/"+name] = func(value string) prometheus.Counter { return c.WithLabelValues(value) }
}

func (m *Metrics) histogram(subsystem, name string, buckets []float64, help string) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "jamq", Subsystem: subsystem, Name: name, Help: help, Buckets: buckets,
	})
	m.registry.MustRegister(h)
	m.times[subsystem+"/"+name] = h
}

// add adds n to a counter. A counter that this version does not know is
// ignored.
func (m *Metrics) add(name, label string, n int) {
	if counter := m.counters[name]; counter != nil {
		counter(label).Add(float64(n))
	}
}

func (m *Metrics) observe(name string, value float64) {
	if h := m.times[name]; h != nil {
		h.Observe(value)
	}
}

// Hooks returns the hooks for the node's configuration.
func (m *Metrics) Hooks() node.Metrics {
	return node.Metrics{
		Pool:    evmrollup.PoolMetrics{Event: m.poolEvent, Sent: m.sent},
		Builder: m.of("submit"),
		States:  m.of("statedb"),
	}
}

// of returns the functions for the metrics of a package.
func (m *Metrics) of(name string) jamq.Metrics {
	return jamq.Metrics{
		Count:   func(counter, label string, n int) { m.add(name+"/"+counter, label, n) },
		Observe: func(histogram string, value float64) { m.observe(name+"/"+histogram, value) },
	}
}

// poolEvent counts an event of the pool.
func (m *Metrics) poolEvent(e txpool.Event) {
	switch {
	case e.Admitted:
		m.add("txpool/admitted", "", 1)
		m.observe("txpool/tx_bytes", float64(e.Tx.Size()))
	case e.Kind == txpool.Replaced, e.Kind == txpool.Included:
		m.add("txpool/"+e.Kind.String(), "", 1)
	case e.Kind == txpool.Dropped:
		m.add("txpool/dropped", txpool.Label(e.Reason), 1)
		if errors.Is(e.Reason, txpool.ErrPoolFull) {
			m.observe("txpool/eviction_age_seconds", e.Age.Seconds())
		}
	}
}

// sent counts a transaction that was sent to the pool.
func (m *Metrics) sent(took time.Duration, err error) {
	if err != nil {
		m.add("txpool/rejected", txpool.Label(err), 1)
		return
	}
	m.observe("txpool/admit_seconds", took.Seconds())
}

// Watch adds the levels of a node.
func (m *Metrics) Watch(n *node.Node) { m.registry.MustRegister(&levels{node: n}) }

// Handler serves the metrics to Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
