// Package live collects the current state of a node, and that of the last
// minute or so, for the page in a browser (package page).
//
// The node reports events to a [Hub]: JAM blocks, changes in the queue, and
// faults injected by its users. The hub keeps a bounded model of them. It polls
// a [Source] for the pool and the heads. At most four times a second, and only
// if something changed, it publishes an immutable [Snapshot]:
//
//	snapshot, changed := hub.Snapshot()
//	for {
//		show(snapshot.State)
//		<-changed                           // or hub.Done()
//		snapshot, changed = hub.Snapshot()  // the newest one
//	}
//
// Readers fetch the newest snapshot at their own pace. A slow reader skips
// snapshots, delays nothing and costs no memory. [Snapshot.Changes] returns the
// JSON of the parts of the state that a reader does not have yet.
//
// The model is a value and gets the time as a parameter (model.go). The hub
// adds a lock and a clock.
package live
