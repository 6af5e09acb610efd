// Package pebblejournal is a journal (see package journal) in a Pebble database: the choice for a node that has one, or whose journal is
// written often and in large records.
//
//	j, err := pebblejournal.Open(dir, pebblejournal.Options{})
//	runner, _, err := submit.OpenRunner(cfg, root, submit.Durability[Bundle]{Journal: j, Codec: codec}, builder, submitter)
//
// Pebble finds a torn end of its write-ahead log by itself, and opens without it. Each record carries its number and a checksum of its own
// besides: Open reads them all, cuts the journal where one is missing or does not match, and says how many records it cut. Nothing is ever guessed.
package pebblejournal
