// Command refnode is jamq's reference node. It accepts Ethereum transactions over
// JSON-RPC, executes them with go-ethereum's EVM, packs them into work packages
// for a JAM chain, and follows them to finality. The JAM chain is an embedded
// simulation, or the chain of a JAM node.
//
// Run it until it is interrupted:
//
//	go run ./examples/refnode
//
// It is then in developer mode (-dev): slots are short, and it signs for its accounts.
//
// Send 51 transactions, check that all become final, and exit:
//
//	go run ./examples/refnode -demo 51
//
// Let visitors of the page inject faults into the JAM chain:
//
//	go run ./examples/refnode -lab
//
// Use the chain of a JAM node, such as examples/jamnode. Its genesis state has the rollup's
// service:
//
//	go run ./examples/refnode -genesis > genesis.json
//	go run ./examples/jamnode -genesis genesis.json
//	go run ./examples/refnode -jam ws://127.0.0.1:19800
//
// Run several replicas on such a chain, of which one leads, with a log in PostgreSQL:
//
//	go run ./examples/refnode -jam ws://127.0.0.1:19800 -datadir a \
//		-authrpc.jwtsecret key -cluster postgres://…
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/demo"
	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/examples/refnode/load"
	"github.com/jamq/jamq/examples/refnode/ops"
	"github.com/jamq/jamq/examples/refnode/page"
	"github.com/jamq/jamq/internal/backoff"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes of the command.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// run runs the command and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var cfg lab.Config
	if err == nil {
		cfg, err = o.config(stderr)
	}
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		fmt.Fprintln(stderr, "refnode:", err)
		return exitUsage
	}
	do := serve
	if o.genesis {
		do = printGenesis
	}
	if o.exportTo != "" || o.importOf != "" {
		do = move
	}
	if o.admin != "" {
		do = callAdmin
	}
	if err := do(ctx, cfg, o, stdout); err != nil {
		fmt.Fprintln(stderr, "refnode:", err)
		return exitFailed
	}
	return exitOK
}

// move exports or imports a node.
func move(ctx context.Context, cfg lab.Config, o *options, stdout io.Writer) error {
	if o.importOf != "" {
		if err := node.Import(ctx, cfg.Config, o.importOf); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "imported %s\n", o.importOf)
	}
	if o.exportTo != "" {
		if err := node.Export(ctx, cfg.Config, o.exportTo); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "exported %s\n", o.exportTo)
	}
	return nil
}

// printGenesis prints the part of a JAM chain's specification (JIP-4) that has the rollup's
// service.
func printGenesis(_ context.Context, cfg lab.Config, _ *options, stdout io.Writer) error {
	entries, err := node.Genesis(cfg.Config)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(map[string]any{"genesis_state": entries})
}

const (
	// drainTime is the maximum time that the node waits at its end for
	// transactions that are not final. stopTime is the same for its last
	// requests.
	drainTime = 3 * time.Second
	stopTime  = time.Second
	// headerTime is the maximum time in which a client must send a request's
	// header. idleTime is the maximum time that an unused connection stays
	// open.
	headerTime, idleTime = 10 * time.Second, 2 * time.Minute
)

// serve runs the node and its server until ctx ends, or the demonstration or
// load is complete.
func serve(ctx context.Context, cfg lab.Config, o *options, stdout io.Writer) (err error) {
	metrics := ops.New()
	cfg.Metrics = metrics.Hooks()
	n, err := lab.New(cfg)
	if err != nil {
		return err
	}
	metrics.Watch(n.Node)
	handler, endSockets, err := page.Handler(n, o.rpc)
	if err != nil {
		return err
	}
	servers, err := startServers(o, handler, n.Node, metrics)
	if err != nil {
		endSockets()
		return err
	}
	ended := make(chan error, 1)
	running, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	go func() { ended <- n.Run(running) }()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		endSockets()
		err = errors.Join(err, servers.close(ending))
		stopNode()
		err = errors.Join(err, <-ended)
	}()

	awaitRunning(ctx, n.Node, ended)
	switch {
	case o.demo > 0:
		return demo.Run(ctx, servers.url, n.Accounts(), o.demo, stdout)
	case o.load.Rate > 0:
		return load.Run(ctx, servers.url, n.Accounts(), o.load, stdout)
	}
	greet(stdout, servers, o, n.Accounts())
	select {
	case err := <-servers.ended:
		return err
	case err := <-ended:
		ended <- nil
		if errors.Is(err, node.ErrDisk) {
			stayForOperator(ctx, err, servers.ended, stdout)
		}
		return err
	case <-n.Left():
		fmt.Fprintln(stdout, "the lead was handed over, stopping")
		return nil
	case <-ctx.Done():
	}
	return finish(context.WithoutCancel(ctx), n.Node, stdout)
}

// awaitRunning waits until the node runs, so that users learn its address when it answers all
// calls, or until Run has ended.
func awaitRunning(ctx context.Context, n *node.Node, ended <-chan error) {
	for n.Alive() != nil && len(ended) == 0 && backoff.Pause(ctx, time.Millisecond) {
	}
}

// stayForOperator keeps the process of a node whose disk has failed, until ctx
// ends. Its server answers /healthz with the reason, refuses transactions
// and can be read.
func stayForOperator(ctx context.Context, reason error, served <-chan error, stdout io.Writer) {
	fmt.Fprintf(stdout, "the node has stopped because of its disk; repair the disk and restart the node: %v\n", reason)
	select {
	case <-ctx.Done():
	case <-served:
	}
}

// finish ends the work of a node, within drainTime: it waits until all transactions are final, or
// passes the lead on to another replica, to which requests then go until the server stops.
func finish(ctx context.Context, n *node.Node, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	switch {
	case n.Clustered():
		err := n.Leave(ctx, "")
		fmt.Fprintln(stdout, "stopping; the other replicas go on")
		return err
	case n.Drain(ctx) == nil:
		fmt.Fprintln(stdout, "drained, stopping")
	default:
		fmt.Fprintln(stdout, "stopping; transactions that are not final are kept only with -datadir")
	}
	return nil
}

// greet prints the node's addresses and its funded accounts, in the form that
// users of Anvil and Hardhat know.
func greet(w io.Writer, s *servers, o *options, accounts []devkeys.Account) {
	chain := fmt.Sprintf("embedded JAM chain %s with slots of %v", o.spec, o.slot)
	if o.jam != "" {
		chain = "JAM node " + o.jam
	}
	fmt.Fprintf(w, "jamq reference node: chain id %d, %s\n\n", o.chainID, chain)
	fmt.Fprintln(w, "Accounts, 10000 ETH each. The keys are public: never send them anything of value.")
	for i, a := range accounts {
		fmt.Fprintf(w, "(%d) %s  key 0x%x\n", i, a.Address, a.Key.D.FillBytes(make([]byte, 32)))
	}
	if o.dev {
		fmt.Fprintln(w, "\nDeveloper mode: the node signs for these accounts.")
	}
	fmt.Fprintf(w, "\nMnemonic: %s\nListening on %s (HTTP and WebSocket; a browser sees a live page)\n", devkeys.Mnemonic, s.url)
	if s.opsURL != s.url {
		fmt.Fprintf(w, "Operators see %s (/metrics, /healthz, /readyz)\n", s.opsURL)
	}
}
