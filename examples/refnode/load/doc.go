// Package load sends transactions to a node at a given rate, through its RPC,
// and prints a report: the rates, the time from sending to the tags pending,
// latest and finalized, and the bottleneck.
//
// An oracle, which reads only finalized blocks and JAM itself, checks that no
// transaction was executed twice or lost. A transaction is lost if it is
// neither in a block nor in the pool.
package load
