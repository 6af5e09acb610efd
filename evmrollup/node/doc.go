// Package node runs an EVM rollup on package builder. The JAM chain is either an
// embedded, simulated one or that of a JAM node:
//
//	cfg := node.DefaultConfig(jamq.Tiny(), 6*time.Second, 1)
//	cfg.ChainID = big.NewInt(7001)
//	n, err := node.New(cfg)
//	…
//	handler, stop, err := rpcapi.Handler(n, rpcapi.DefaultConfig())
//	…
//	err = n.Run(ctx)
//
// [Node.Run] ends with its context. With Config.DataDir, the node's data survives
// if the process is killed, and with Config.Cluster several nodes share a rollup.
// docs/evmrollup.md has a complete program.
//
//	node.go      opens the rollup and its builder, and runs them
//	follow.go    connects to the JAM chain, and passes its blocks to observers
//	progress.go  records how far blocks are
//	heads.go     follows the builder, and records how the latest block moved
//	service.go   checks the calls that the rollup's service received
//	proof.go     proves that a transaction is final
//	observe.go   reports the events of the node to an observer
package node
