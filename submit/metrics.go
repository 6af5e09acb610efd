package submit

import (
	"time"

	"github.com/jamq/jamq/bundlequeue"
)

// Metrics are the funcs that count and measure. The runner calls them under no lock and from
// several goroutines at once. Nil funcs count nothing. Levels are in bundlequeue.Stats and [Health].
type Metrics struct {
	// Count adds one to a counter. The label is out of a small set: see the counters.
	Count func(counter Counter, label string)
	// Observe adds a duration, in seconds, to a histogram.
	Observe func(histogram Histogram, seconds float64)
}

// Counter names what is counted.
type Counter string

const (
	// CountBuilds counts builds: "ok" or "failed", as is a package that must not be sent or is of
	// no use.
	CountBuilds Counter = "builds"
	// CountSends counts sends: "ok", or the class of the error in words.
	CountSends Counter = "sends"
	// CountUseless counts packages that were dead before they were sent, by reason.
	CountUseless Counter = "useless"
	// CountPauses counts pauses after fatal errors: "fatal".
	CountPauses Counter = "pauses"
	// CountEffects counts effects by kind: "build", "send", "changed", "died", "failed",
	// "resurrected".
	CountEffects Counter = "effects"
)

// Histogram names what is measured.
type Histogram string

const (
	// BuildSeconds and SendSeconds are how long the host's calls took; StepSeconds how long the
	// queue took for an event, the journal with it.
	BuildSeconds Histogram = "build_seconds"
	SendSeconds  Histogram = "send_seconds"
	StepSeconds  Histogram = "step_seconds"
)

func (m *Metrics) count(counter Counter, label string) {
	if m.Count != nil {
		m.Count(counter, label)
	}
}

func (m *Metrics) observe(histogram Histogram, took time.Duration) {
	if m.Observe != nil {
		m.Observe(histogram, took.Seconds())
	}
}

func effectName[B any](e bundlequeue.Effect) string {
	switch e.(type) {
	case bundlequeue.Build[B]:
		return "build"
	case bundlequeue.Send[B]:
		return "send"
	case bundlequeue.Changed:
		return "changed"
	case bundlequeue.Died:
		return "died"
	case bundlequeue.Failed[B]:
		return "failed"
	}
	return "resurrected"
}
