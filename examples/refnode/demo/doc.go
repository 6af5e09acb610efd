// Package demo sends transactions to a running reference node as any client would, watches them until they are final, and checks by
// the same RPC that none was lost and none executed twice.
package demo
