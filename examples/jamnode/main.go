// Command jamnode serves a simulated JAM chain over JIP-2, as a JAM node does.
// A builder in another process can use it. The genesis state of the chain has the
// services of the rollups, as JIP-4 defines it:
//
//	go run ./examples/refnode -genesis > genesis.json
//	go run ./examples/jamnode -slot 1s -genesis genesis.json
//	go run ./examples/refnode -jam ws://127.0.0.1:19800
//
// With -datadir the chain survives the process. It continues at the same block,
// and the slots in between are skipped. The flags of the chain (spec, slot,
// seed, loss, skip, fork, lag, genesis) must have the values of the first start.
// Otherwise jamnode reports the first difference and exits.
//
// With -stdin it reads commands from standard input, one per line, that change
// the faults while the chain runs:
//
//	loss 1
//	finality stop
//	reorg 2
//
// The command "help" lists all of them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/jamq/jamq/examples/jamnode/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
