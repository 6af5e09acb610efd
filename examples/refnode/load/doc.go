// Package load sends a node as many transactions as it is told, through its RPC, and reports what became of them: rates, how long it took from sending
// to the tags pending, latest and finalized, what bounded it, and by an oracle that reads only finalized blocks and JAM itself, whether anything
// ran twice, or was lost: in no final block, and in no other block and not in the pool either.
package load
