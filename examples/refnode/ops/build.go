package ops

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// buildInfo returns jamq_build_info: a constant 1 whose labels tell which build a
// process is, so that a graph shows when a node was upgraded.
func buildInfo() prometheus.Collector {
	info, _ := debug.ReadBuildInfo()
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "jamq", Name: "build_info", Help: "Always 1: the build of this process, by version, by goversion (that of Go), and by revision of its source.",
		ConstLabels: buildLabels(info),
	})
	g.Set(1)
	return g
}

// buildLabels returns the labels of a build. The revision is that of the checkout
// in which Go built the program, with the suffix -dirty if files had changed. A
// value is "unknown" if the program does not contain it. info may be nil.
func buildLabels(info *debug.BuildInfo) prometheus.Labels {
	labels := prometheus.Labels{"version": "unknown", "goversion": "unknown", "revision": "unknown"}
	if info == nil {
		return labels
	}
	labels["goversion"] = info.GoVersion
	if info.Main.Version != "" {
		labels["version"] = info.Main.Version
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			labels["revision"] = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed {
		labels["revision"] += "-dirty"
	}
	return labels
}
