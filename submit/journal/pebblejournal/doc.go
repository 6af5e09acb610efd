// Package pebblejournal is a journal (see package journal) in a Pebble database: the choice for a node that has one, or whose journal is
// written often and in large records.
//
//	j, err := pebblejournal.Open(dir, pebblejournal.Options{})
//	runner, err := submit.OpenRunner(cfg, root, submit.Durability[Bundle]{Journal: j, Codec: codec}, builder, submitter)
//
// Pebble finds a torn end of its write-ahead log by itself, and opens without it. Each record carries its number and a checksum of its own
// besides: Open reads them all, cuts damaged ones off at the end and says how many. It refuses a journal in which whole records follow a damaged or missing
// one: those were acknowledged, and nothing is ever guessed.
//
// Pebble takes any damage in its log for a torn end, and says nothing. So a file of a few bytes in the journal's directory, "acknowledged", keeps how many records
// there must be: Open refuses a journal that lost some, through rot or because an older copy was put in its place. Who accepts the loss, and knows what a driver then
// forgets, removes the file.
package pebblejournal
