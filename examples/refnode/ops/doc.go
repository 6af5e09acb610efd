// Package ops serves the node's endpoints for operators:
//
//	/metrics       metrics for Prometheus; docs/operations.md explains them,
//	               grafana.json is a dashboard, and alerts.yml has alerts
//	/healthz       200 while the node works; otherwise 503 with the reason
//	/readyz        200 while the node is ready for transactions; otherwise
//	               503 with the reason
//	/debug/pprof/  Go's profiles, if enabled; they show memory contents
package ops
