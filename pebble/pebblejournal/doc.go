// Package pebblejournal stores a journal (see package journal) in a Pebble
// database. Use it if the host already has such a database, or if the journal
// is written often and in large records.
//
//	j, err := pebblejournal.Open(dir, pebblejournal.Options{})
//	b, err := builder.Open(ctx, cfg, j, rollup, network)
//
// Pebble repairs a torn end of its write-ahead log itself. In addition, each record
// has a number and a checksum. Open reads all records and removes damaged ones at
// the end; [Journal.Cut] returns their number. If intact records follow a damaged
// or missing one, Open returns journal.ErrCorrupt, because the missing records were
// acknowledged.
//
// Pebble treats any damage in its log as a torn end and reports no error. To detect
// such a loss, the file "acknowledged" in the journal's directory contains the
// number of acknowledged records. Open returns journal.ErrCorrupt if acknowledged
// records are missing, because of disk errors or because an older copy of the
// database was restored. To continue without them, remove that file; the driver has
// then forgotten their content.
package pebblejournal
