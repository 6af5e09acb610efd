package builder

import "github.com/jamq/jamq/bundlequeue"

// The counters of Config.Metrics.
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

// The histograms of Config.Metrics, in seconds.
const (
	// BuildSeconds is the duration of a call of Network.Pack and Rollup.Payload.
	BuildSeconds = "build_seconds"
	// SendSeconds is the duration of a call of Network.Send.
	SendSeconds = "send_seconds"
	// StepSeconds is the duration of a step of the queue, including the write
	// to the log.
	StepSeconds = "step_seconds"
)

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
