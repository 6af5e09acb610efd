// Package page serves the node's live page, which shows the state of package
// live in a browser. The page is an embedded HTML file with its style and
// scripts. It loads nothing from other hosts.
//
//	GET  /            the page
//	GET  /live        server-sent events; the first is a JSON object with the
//	                  whole state, the next ones contain the parts that changed
//	POST /lab/NAME    injects a fault; see below
//
// A stream is at most one snapshot behind: a slow reader skips snapshots. The
// stream ends when the node stops, and the page then reconnects by itself.
//
// # Fault injection
//
// With -lab, a POST request with the body {"value": …} injects a fault. NAME is
// loss, skip or latency (sets that value), stop (stops or resumes finality),
// reorg (replaces that many blocks) or kill (makes the package of that block
// die).
//
// Every visitor of the page may use the laboratory, so enable it only on your
// own machine. Other web sites cannot use it: a request must have the page's
// origin, contain JSON, and name a host that the server accepts.
package page
