// Command refnode is jamq's reference node: it takes real Ethereum transactions over JSON-RPC, executes them with go-ethereum's EVM,
// packs them into work packages for a JAM chain, and follows them to finality. The chain is an embedded simulated one, or that of a JAM node.
//
//	go run ./examples/refnode              runs until it is interrupted
//	go run ./examples/refnode -demo 51     sends itself 51 transactions, checks that all become final, and ends
//	go run ./examples/refnode -lab         lets its page break the JAM chain, to see how the node recovers
//	go run ./examples/refnode -tui         shows itself in the terminal
//	go run ./examples/refnode -jam ws://127.0.0.1:19800     works on the chain of a JAM node, such as examples/jamnode
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/demo"
	"github.com/jamq/jamq/examples/refnode/devkeys"
	"github.com/jamq/jamq/examples/refnode/load"
	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/examples/refnode/ops"
	"github.com/jamq/jamq/examples/refnode/rpcapi"
	"github.com/jamq/jamq/examples/refnode/tui"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the command's flags.
type options struct {
	http, dataDir, spec string
	jam                 string
	service             uint64
	slot                time.Duration
	demo, bundle        int
	load                load.Config
	seed                uint64
	loss, skip          float64
	chainID             uint64
	verbose, pprof      bool
	lab, tui            bool
	rpc                 rpcapi.Config
}

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// demoSlot is the slot of a demonstration unless -slot says otherwise.
const demoSlot = 250 * time.Millisecond

// loadBundle is how many transactions a block takes under load unless -bundle says otherwise: as many transfers as its gas.
const loadBundle = 1400

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{rpc: rpcapi.DefaultConfig()}
	fs := flag.NewFlagSet("refnode", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.http, "http", "127.0.0.1:8545", "address for JSON-RPC over HTTP and WebSocket")
	fs.StringVar(&o.dataDir, "datadir", "", "directory for what must survive the process; empty: memory")
	fs.StringVar(&o.spec, "spec", "tiny", "constants of the embedded JAM chain: tiny or full")
	fs.DurationVar(&o.slot, "slot", 6*time.Second, "slot duration; a demonstration takes 250ms unless told otherwise")
	fs.IntVar(&o.demo, "demo", 0, "send this many transactions, check that all become final, and end")
	fs.IntVar(&o.load.Rate, "load", 0, "send this many transactions per second, report what became of them, and end")
	fs.DurationVar(&o.load.Duration, "load.for", 30*time.Second, "for how long")
	fs.IntVar(&o.load.Accounts, "load.accounts", 500, "how many accounts send; more than the ten funded ones are made and paid first")
	fs.BoolVar(&o.load.Mixed, "load.mixed", false, "all types of transactions, transfers and calls; else transfers alone")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the embedded JAM chain")
	fs.Float64Var(&o.loss, "loss", 0, "share of submissions that are lost, 0 to 1")
	fs.Float64Var(&o.skip, "skip", 0, "share of slots without a block, 0 to below 1")
	fs.StringVar(&o.jam, "jam", "", "RPC of a JAM node, ws://host:port; empty: an embedded chain, for which spec, slot, seed, loss and skip are")
	fs.Uint64Var(&o.service, "service", uint64(node.DefaultService), "the rollup's service on the JAM chain")
	fs.IntVar(&o.bundle, "bundle", 5, "most transactions in a block, which is a bundle of its own")
	fs.Uint64Var(&o.chainID, "chainid", node.DefaultChainID, "chain id of the rollup")
	fs.BoolVar(&o.lab, "lab", false, "let the page break the embedded JAM chain: loss, skipped slots, reorganizations and more")
	fs.BoolVar(&o.tui, "tui", false, "show the node in the terminal, or as lines where stdout is none; a terminal gets no log then")
	fs.BoolVar(&o.pprof, "pprof", false, "serve Go's profiles at /debug/pprof/, to everybody who reaches the node")
	fs.BoolVar(&o.verbose, "v", false, "log what the queue does")
	o.rpc.RegisterFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := o.rpc.Validate(); err != nil {
		return nil, err
	}
	if o.demo < 0 {
		return nil, fmt.Errorf("-demo is %d, want 0 or more", o.demo)
	}
	if (o.demo > 0 || o.load.Rate > 0) && o.tui {
		return nil, errors.New("-tui draws, and so do -demo and -load: give one of them")
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"spec", "slot", "seed", "loss", "skip", "lab"} {
		if o.jam != "" && given[name] {
			return nil, fmt.Errorf("-%s is about the embedded chain, and -jam names another", name)
		}
	}
	if o.service >= 1<<32-1 {
		return nil, fmt.Errorf("-service is %d, want below %d", o.service, uint32(1<<32-1))
	}
	if o.load.Rate != 0 {
		if o.demo > 0 {
			return nil, errors.New("-demo and -load: want one of them")
		}
		if err := o.load.Validate(); err != nil {
			return nil, err
		}
		if !given["bundle"] {
			o.bundle = loadBundle
		}
	}
	if o.demo > 0 || o.load.Rate > 0 {
		if !given["slot"] {
			o.slot = demoSlot
		}
		if !given["http"] {
			o.http = "127.0.0.1:0" // another node may have the usual port
		}
	}
	return o, nil
}

func (o *options) config(stderr io.Writer) (node.Config, error) {
	specs := map[string]jamq.ChainSpec{"tiny": jamq.Tiny(), "full": jamq.Full()}
	spec, ok := specs[o.spec]
	if !ok {
		return node.Config{}, fmt.Errorf("-spec is %q, want tiny or full", o.spec)
	}
	cfg := node.DefaultConfig(spec, o.slot, o.seed)
	cfg.ChainID = new(big.Int).SetUint64(o.chainID)
	cfg.DataDir, cfg.JAMURL, cfg.Service = o.dataDir, o.jam, jamq.ServiceID(o.service)
	cfg.MaxTxsPerBundle, cfg.Lab = o.bundle, o.lab
	cfg.JAM.LossProbability, cfg.JAM.SkipProbability = o.loss, o.skip
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	} else if o.demo > 0 || o.load.Rate > 0 {
		level = slog.LevelError
	}
	if o.tui && tui.IsTerminal(stderr) {
		stderr = io.Discard // it would write into the picture
	}
	cfg.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return cfg, nil
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var cfg node.Config
	if err == nil {
		cfg, err = o.config(stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "refnode:", err)
		return exitUsage
	}
	if err := serve(ctx, cfg, o, stdout); err != nil {
		fmt.Fprintln(stderr, "refnode:", err)
		return exitFailed
	}
	return exitOK
}

const (
	// drainTime is how long the node waits at its end for what is on its way, stopTime for its last requests.
	drainTime = 3 * time.Second
	stopTime  = time.Second
	// headerTime bounds how long a client may take to send a request's header, idleTime how long it may keep a connection that it does not use.
	headerTime, idleTime = 10 * time.Second, 2 * time.Minute
)

// serve runs the node and its server until ctx ends, or the demonstration has.
func serve(ctx context.Context, cfg node.Config, o *options, stdout io.Writer) (err error) {
	metrics := ops.New()
	cfg.Metrics = metrics.Hooks()
	n, err := node.New(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.http)
	if err != nil {
		return err
	}
	handler, endSockets, err := rpcapi.Handler(n, o.rpc)
	if err != nil {
		return err
	}
	metrics.Watch(n)
	server := &http.Server{Handler: ops.Handler(n, metrics, o.pprof, handler), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	running, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(running) }()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		endSockets()
		if closing := server.Shutdown(ending); closing != nil {
			closing = server.Close()
			err = errors.Join(err, closing)
		}
		stopNode()
		err = errors.Join(err, <-ended)
	}()

	url := "http://" + listener.Addr().String()
	if o.demo > 0 {
		return demo.Run(ctx, url, n.Accounts(), o.demo, stdout)
	}
	if o.load.Rate > 0 {
		return load.Run(ctx, url, n.Accounts(), o.load, stdout)
	}
	greet(stdout, url, o, n.Accounts())
	shown, endView := show(ctx, n.Live(), o.tui, stdout)
	defer endView()
	select {
	case err := <-served:
		return err
	case err := <-ended:
		ended <- nil
		return err
	case err := <-shown:
		if err != nil {
			return err
		}
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if n.Drain(draining) == nil {
		fmt.Fprintln(stdout, "drained, stopping")
	} else {
		fmt.Fprintln(stdout, "stopping; what is not final yet is kept with -datadir only")
	}
	return nil
}

// greet prints where the node listens and who has money, as users of Anvil and Hardhat expect it.
func greet(w io.Writer, url string, o *options, accounts []devkeys.Account) {
	chain := fmt.Sprintf("embedded JAM chain %s with slots of %v", o.spec, o.slot)
	if o.jam != "" {
		chain = "JAM node " + o.jam
	}
	fmt.Fprintf(w, "jamq reference node: chain id %d, %s\n\n", o.chainID, chain)
	fmt.Fprintln(w, "Accounts, 10000 ETH each. The keys are public: never send them anything of value.")
	for i, a := range accounts {
		fmt.Fprintf(w, "(%d) %s  key 0x%x\n", i, a.Address, a.Key.D.FillBytes(make([]byte, 32)))
	}
	fmt.Fprintf(w, "\nMnemonic: %s\nListening on %s (HTTP and WebSocket; a browser sees a live page)\n", devkeys.Mnemonic, url)
}
