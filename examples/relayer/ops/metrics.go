package ops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/jamq/jamq/eoa"
)

// Metrics collects the metrics of a fleet. No metric has an account as a label,
// because a fleet may have thousands; /healthz names those with problems. All
// methods are safe for concurrent use.
type Metrics struct {
	registry             *prometheus.Registry
	transactions, stored *prometheus.CounterVec
	submitted, confirmed prometheus.Histogram
}

// New returns metrics with the process's own collectors.
func New() *Metrics {
	counter := func(name, label, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "jamq", Subsystem: "eoa", Name: name, Help: help}, []string{label})
	}
	histogram := func(name, help string) prometheus.Histogram {
		buckets := prometheus.ExponentialBuckets(0.01, 2, 20) // 10 ms to 87 minutes
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "jamq", Subsystem: "eoa", Name: name, Help: help, Buckets: buckets})
	}
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		transactions: counter("transactions_total", "event", "Number of events of transactions, by event."),
		stored:       counter("store_calls_total", "kind", "Number of round trips to the store, by kind: read or write."),
		submitted:    histogram("submitted_seconds", "Time from the request until a node had its transaction, in seconds."),
		confirmed:    histogram("confirmed_seconds", "Time from the request until it was confirmed, in seconds."),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.transactions, m.stored, m.submitted, m.confirmed)
	return m
}

// Observe counts what a step did. It is the value for eoa.Config.Observe.
func (m *Metrics) Observe(r eoa.Report) {
	for event, n := range map[string]int{
		"sent": r.Sent, "sent_again": r.Recovered, "accepted": r.Accepted, "signed": r.Signed, "bumped": r.Bumped, "mined": r.Mined,
		"ended": r.Ended, "failed": r.Failed, "dropped": r.Dropped,
	} {
		m.transactions.WithLabelValues(event).Add(float64(n))
	}
	m.stored.WithLabelValues("write").Add(float64(r.Commits))
	m.stored.WithLabelValues("read").Add(float64(r.Reads))
	for _, took := range r.ToSubmitted {
		m.submitted.Observe(took.Seconds())
	}
	for _, took := range r.ToConfirmed {
		m.confirmed.Observe(took.Seconds())
	}
}

// Watch adds the levels of a fleet. It must be called once.
func (m *Metrics) Watch(f *eoa.Fleet) { m.registry.MustRegister(levels{f}) }

// levels reads a fleet's levels whenever Prometheus collects them.
type levels struct{ fleet *eoa.Fleet }

func level(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("jamq", "eoa", name), help, labels, nil)
}

var (
	busy        = level("busy_accounts", "Number of accounts that this fleet is working on.")
	problems    = level("problems", "Number of accounts with a problem, by kind of the problem.", "kind")
	oldest      = level("oldest_problem_seconds", "Time that the oldest problem has lasted, in seconds, by kind; 0 without one.", "kind")
	undelivered = level("undelivered_accounts", "Number of accounts with events that no Deliver has taken, of all fleets.")
)

// Describe implements prometheus.Collector.
func (l levels) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{busy, problems, oldest, undelivered} {
		to <- d
	}
}

// kinds are the kinds that have a value also without a problem, so that a missing
// value means that nothing is measured.
var kinds = []eoa.ProblemKind{eoa.ProblemStopped, eoa.ProblemFunds, eoa.ProblemGap, eoa.ProblemStalled, eoa.ProblemChain, eoa.ProblemSigner,
	eoa.ProblemStore, eoa.ProblemLease, eoa.ProblemOpener, eoa.ProblemRequest}

// Collect implements prometheus.Collector. If the store does not answer, the number
// of accounts with undelivered events is missing.
func (l levels) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(busy, float64(l.fleet.Busy()))
	counts, longest := map[eoa.ProblemKind]int{}, map[eoa.ProblemKind]time.Duration{}
	for _, kind := range kinds {
		counts[kind] = 0
	}
	for _, p := range l.fleet.Health() {
		counts[p.Kind]++
		longest[p.Kind] = max(longest[p.Kind], time.Since(p.Since))
	}
	for kind, n := range counts {
		gauge(problems, float64(n), string(kind))
		gauge(oldest, longest[kind].Seconds(), string(kind))
	}
	if n, err := l.undelivered(); err == nil {
		gauge(undelivered, float64(n))
	}
}

// timeout is the time limit for the store's answers.
const timeout = 5 * time.Second

// undelivered counts the accounts with undelivered events.
func (l levels) undelivered() (n int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	const page = 1000
	for after := (eoa.Account{}); ; {
		accounts, err := l.fleet.Undelivered(ctx, after, page)
		if err != nil {
			return 0, err
		}
		if n += len(accounts); len(accounts) < page {
			return n, nil
		}
		after = accounts[page-1]
	}
}
