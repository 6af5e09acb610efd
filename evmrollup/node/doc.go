// Package node runs an EVM rollup on package builder, on an embedded simulated JAM
// chain or on that of a JAM node:
//
//	cfg := node.DefaultConfig(jamq.Tiny(), 6*time.Second, 1)
//	cfg.ChainID = big.NewInt(7001)
//	n, err := node.New(cfg)
//	…
//	handler, stop, err := rpcapi.Handler(n, rpcapi.DefaultConfig())
//	…
//	err = n.Run(ctx)
//
// [Node.Run] ends with its context. With Config.DataDir the node survives a kill, and with
// Config.Cluster several nodes share a rollup. docs/evmrollup.md has a program.
//
//	node.go      opens the rollup and its builder, and runs them
//	follow.go    connects to the JAM chain, and shows the views its blocks
//	progress.go  records how far blocks are
//	heads.go     follows the builder, and tells subscribers how the latest block moved
//	service.go   checks the calls that the rollup's service received
//	proof.go     proves that a transaction is final
//	observe.go   shows a view what the node does
package node
