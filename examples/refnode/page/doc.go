// Package page is the node's live page: what package live shows, for browsers. It is one HTML file with its style and script, embedded, that asks nobody
// else for anything.
//
//	GET  /               the page
//	GET  /live           server-sent events: a JSON object with the whole state of package live, then those of its parts that changed
//	POST /lab/NAME       with -lab: {"value": …} sets loss, skip or latency, stops finality (stop), makes a reorg of so many blocks, or kills a package
//
// A stream is never behind by more than one snapshot: what a slow reader misses it is not told later. It ends when the node does, and the page comes again by
// itself.
//
// Whoever may see the page may use the laboratory: it is for one's own machine. Other web sites may not: a request must come from the page's own
// origin, carry JSON, and name a host that the server answers to.
package page
