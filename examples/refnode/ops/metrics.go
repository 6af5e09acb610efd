package ops

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

// Metrics counts what the packages say. Make one with New, give its Hooks to the node's configuration, and then Watch the node.
type Metrics struct {
	registry *prometheus.Registry
	counters map[string]func(label string) prometheus.Counter
	times    map[string]prometheus.Histogram
}

// Buckets: seconds from 50 µs to 26 s, and bytes from 64 to a megabyte.
var (
	secondBuckets = prometheus.ExponentialBuckets(50e-6, 2, 20)
	byteBuckets   = prometheus.ExponentialBuckets(64, 2, 15)
)

// New returns metrics that count nothing yet but the process's own.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), counters: map[string]func(string) prometheus.Counter{}, times: map[string]prometheus.Histogram{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range []txpool.Counter{txpool.CountAdmitted, txpool.CountReplaced, txpool.CountIncluded, txpool.CountDrained} {
		m.counter("txpool", string(c), "")
	}
	m.counter("txpool", string(txpool.CountRejected), "reason")
	m.counter("txpool", string(txpool.CountDropped), "reason")
	m.histogram("txpool", string(txpool.AdmitSeconds), secondBuckets)
	m.histogram("txpool", string(txpool.TxBytes), byteBuckets)
	m.histogram("txpool", string(txpool.EvictionAgeSeconds), secondBuckets)

	m.counter("submit", string(submit.CountBuilds), "result")
	m.counter("submit", string(submit.CountSends), "result")
	m.counter("submit", string(submit.CountUseless), "reason")
	m.counter("submit", string(submit.CountPauses), "cause")
	m.counter("submit", string(submit.CountEffects), "kind")
	for _, h := range []submit.Histogram{submit.BuildSeconds, submit.SendSeconds, submit.StepSeconds} {
		m.histogram("submit", string(h), secondBuckets)
	}
	for _, c := range []statedb.Counter{statedb.CountCommitted, statedb.CountCanonical, statedb.CountDiscarded, statedb.CountDiskBytes} {
		m.counter("statedb", string(c), "")
	}
	return m
}

func (m *Metrics) counter(subsystem, name, label string) {
	opts := prometheus.CounterOpts{Namespace: "jamq", Subsystem: subsystem, Name: name + "_total", Help: "See package " + subsystem + ": Counter."}
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

func (m *Metrics) histogram(subsystem, name string, buckets []float64) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "jamq", Subsystem: subsystem, Name: name, Help: "See package " + subsystem + ": Histogram.", Buckets: buckets,
	})
	m.registry.MustRegister(h)
	m.times[subsystem+"/"+name] = h
}

// add counts; what a newer package counts and this one does not know is left out.
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

// Hooks are for the node's configuration.
func (m *Metrics) Hooks() node.Metrics {
	return node.Metrics{
		Pool: txpool.Metrics{
			Count:   func(c txpool.Counter, reason string) { m.add("txpool/"+string(c), reason, 1) },
			Observe: func(h txpool.Histogram, v float64) { m.observe("txpool/"+string(h), v) },
		},
		Runner: submit.Metrics{
			Count:   func(c submit.Counter, label string) { m.add("submit/"+string(c), label, 1) },
			Observe: func(h submit.Histogram, v float64) { m.observe("submit/"+string(h), v) },
		},
		States: statedb.Metrics{Count: func(c statedb.Counter, n int) { m.add("statedb/"+string(c), "", n) }},
	}
}

// Watch shows the levels of a node, too.
func (m *Metrics) Watch(n *node.Node) { m.registry.MustRegister(&levels{node: n}) }

// Handler answers Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
