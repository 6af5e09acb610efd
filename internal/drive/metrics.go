package drive

import (
	"time"

	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

func count(m *submit.Metrics, counter submit.Counter, label string) {
	if m.Count != nil {
		m.Count(counter, label)
	}
}

func observe(m *submit.Metrics, histogram submit.Histogram, took time.Duration) {
	if m.Observe != nil {
		m.Observe(histogram, took.Seconds())
	}
}

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
