// Package demo sends transactions to a running reference node, as any client
// would, and watches them until they are final. It then checks through the same
// RPC that none was lost and none was executed twice.
package demo
