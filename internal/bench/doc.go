// Command bench compares packages of jamq with similar libraries: txpool with
// the mempools that builders embed today (go-ethereum's legacypool and
// cosmos-sdk's PriorityNonceMempool), and statedb with go-ethereum's binary
// trie. All contenders get the same transactions or writes, and all trees must
// have the same root. The contenders take turns, so that other load on the
// machine affects them equally.
//
// bare is a further pool, which this program contains: the least that can run
// the workloads. The goals for jamq are ratios to it in the same run, so they
// do not depend on the machine. A missed goal is marked in the last column.
//
// released.json has the figures of the last release. Their ratios stand in
// brackets beside those of today, and a row is marked as SLOWER if jamq is
// more than a quarter slower beside each peer. A release writes the file with -record.
//
//	GOWORK=off go -C internal/bench run .                # both tables, ten minutes, 10 GB of memory
//	GOWORK=off go -C internal/bench run . -only statedb  # one table
//	GOWORK=off go -C internal/bench run . -quick         # small and imprecise, half a minute
//
// It is a separate module, so that users of jamq do not download the other
// libraries. It is not in the workspace, because one of them requires a newer
// version of Go.
package main
