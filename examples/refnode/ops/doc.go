// Package ops is what operators ask a node for: metrics for Prometheus, whether it is alive and ready, and profiles.
//
//	/metrics       all counters and levels of the packages: docs/operations.md says what they mean, grafana.json draws them
//	/healthz       200 while the node runs; 503 and why, when it must be started again
//	/readyz        200 while users may send transactions here; 503 and why, when they should go elsewhere for now
//	/debug/pprof/  Go's profiles, only if asked for: they show what is in memory
package ops
