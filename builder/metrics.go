package builder

import "github.com/jamq/jamq/bundlequeue"

// These are the names of the counters that a builder reports to Config.Metrics.
const (
	// CountBuilds counts builds of packages. The label is "ok" or "failed". A package that must not
	// be sent, or that was dead when it was built, counts as failed.
	CountBuilds = "builds"
	// CountSends counts sends. The label is "ok" or the name of the error's
	// submit.Class.
	CountSends = "sends"
	// CountUseless counts packages that died before they were sent. The label
	// is the reason.
	CountUseless = "useless"
	// CountPauses counts pauses after fatal errors. The label is "fatal".
	CountPauses = "pauses"
	// CountEffects counts effects of the queue. The label is the kind of effect: "build", "send",
	// "changed", "died", "failed" or "resurrected".
	CountEffects = "effects"
)

// These are the names of the histograms that a builder reports to Config.Metrics.
// Their unit is seconds.
const (
	// BuildSeconds is the duration of the calls of Rollup.Payload and Network.Pack for one
	// package. It includes the time until the rollup has applied the block.
	BuildSeconds = "build_seconds"
	// SendSeconds is the duration of a call of Network.Send.
	SendSeconds = "send_seconds"
	// StepSeconds is the duration of a step of the queue, including the write
	// to the log.
	StepSeconds = "step_seconds"
)

// effectName returns the label of an effect in the metrics.
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
