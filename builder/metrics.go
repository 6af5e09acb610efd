package builder

import (
	"time"

	"github.com/jamq/jamq/bundlequeue"
)

// Metrics holds the functions that receive counts and durations. The builder calls them
// from several goroutines concurrently, and waits for them: they must return quickly. Nil
// functions are not called. Levels, such as the number of bundles, are in
// bundlequeue.Stats and [Health].
type Metrics struct {
	// Count adds one to a counter. label has one of the few values that the
	// counter's comment lists.
	Count func(counter Counter, label string)
	// Observe adds a duration, in seconds, to a histogram.
	Observe func(histogram Histogram, seconds float64)
}

// Counter is the name of a counter.
type Counter string

const (
	// CountBuilds counts builds. The label is "ok" or "failed". A package that
	// must not be sent, or that was dead when it was built, counts as failed.
	CountBuilds Counter = "builds"
	// CountSends counts sends. The label is "ok" or the name of the error's
	// submit.Class.
	CountSends Counter = "sends"
	// CountUseless counts packages that died before they were sent. The label
	// is the reason.
	CountUseless Counter = "useless"
	// CountPauses counts pauses after fatal errors. The label is "fatal".
	CountPauses Counter = "pauses"
	// CountEffects counts effects. The label is the kind: "build", "send",
	// "changed", "died", "failed" or "resurrected".
	CountEffects Counter = "effects"
)

// Histogram is the name of a histogram.
type Histogram string

const (
	// BuildSeconds is the duration of a call of Network.Pack and Rollup.Payload.
	BuildSeconds Histogram = "build_seconds"
	// SendSeconds is the duration of a call of Network.Send.
	SendSeconds Histogram = "send_seconds"
	// StepSeconds is the duration of a step of the queue, including the write
	// to the log.
	StepSeconds Histogram = "step_seconds"
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

// effectName returns the label of an effect.
func effectName(e bundlequeue.Effect) string {
	switch e.(type) {
	case bundlequeue.Build:
		return "build"
	case bundlequeue.Send:
		return "send"
	case bundlequeue.Changed:
		return "changed"
	case bundlequeue.Died:
		return "died"
	case bundlequeue.Failed:
		return "failed"
	}
	return "resurrected"
}
