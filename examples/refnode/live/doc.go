// Package live shows what a node does, now and in the last minute or so: to a browser (package page), to a terminal (package tui).
//
// The node tells a [Hub] what happens: JAM blocks, what the queue says, what its users do to the chain. The hub keeps a bounded picture of it, and asks a
// [Source] for what is a level and no event: the pool, the heads. At most four times a second, and only when something changed, it publishes a
// [Snapshot], which never changes afterwards:
//
//	snapshot, changed := hub.Snapshot()
//	for {
//		show(snapshot.State)
//		<-changed                           // or hub.Done()
//		snapshot, changed = hub.Snapshot()  // the newest, whatever was missed
//	}
//
// Readers come for the newest snapshot in their own time, so a slow one sees fewer of them, holds nothing up and costs no memory. [Snapshot.Changes] is the
// JSON of those parts of the state that a reader has not seen.
//
// The picture itself is a value (model.go), with time passed in; the hub is a lock and a clock around it.
package live
