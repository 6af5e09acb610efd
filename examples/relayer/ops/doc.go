// Package ops serves the endpoints of a fleet for operators:
//
//	/metrics  metrics for Prometheus; alerts.yml has alerts
//	/healthz  200 with the problems of all accounts, one per line; 503 if one of
//	          them has lasted for too long
//
// It needs package eoa and the client of Prometheus only, so that a host can copy
// it:
//
//	m := ops.New()
//	cfg.Executor.Observe = m.Observe
//	f, err := eoa.NewFleet(cfg, store, open)
//	m.Watch(f)
//	http.Handle("/", ops.Handler(f, m, time.Minute))
package ops
