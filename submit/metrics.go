package submit

// Metrics holds the functions that receive counts and durations. The runner
// calls them without holding a lock, from several goroutines concurrently. Nil
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
	// [Class].
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
	// to the journal.
	StepSeconds Histogram = "step_seconds"
)
