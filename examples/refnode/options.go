package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/examples/refnode/load"
	"github.com/jamq/jamq/examples/refnode/node"
	"github.com/jamq/jamq/examples/refnode/rpcapi"
	"github.com/jamq/jamq/examples/refnode/tui"
)

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

// demoSlot is the slot of a demonstration unless -slot says otherwise.
const demoSlot = 250 * time.Millisecond

// loadBundle is how many transactions a block takes under load unless -bundle says otherwise: as many transfers as its gas.
const loadBundle = 1400

// parse reads the command's flags, and checks what does not go together.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{rpc: rpcapi.DefaultConfig()}
	fs := flag.NewFlagSet("refnode", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.register(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := o.check(given); err != nil {
		return nil, err
	}
	o.adapt(given)
	return o, nil
}

func (o *options) register(fs *flag.FlagSet) {
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
	fs.BoolVar(&o.pprof, "pprof", false, "serve Go's profiles at /debug/pprof/, to everybody who reaches the node by its address or one of -http.vhosts")
	fs.BoolVar(&o.verbose, "v", false, "log what the queue does")
	o.rpc.RegisterFlags(fs)
}

// check returns what is wrong with the flags, of which some were given.
func (o *options) check(given map[string]bool) error {
	for _, name := range []string{"spec", "slot", "seed", "loss", "skip", "lab"} {
		if o.jam != "" && given[name] {
			return fmt.Errorf("-%s is about the embedded chain, and -jam names another", name)
		}
	}
	for _, name := range []string{"load.for", "load.accounts", "load.mixed"} {
		if given[name] && !given["load"] {
			return fmt.Errorf("-%s says how to load the node, and needs -load", name)
		}
	}
	switch {
	case o.demo < 0:
		return fmt.Errorf("-demo is %d, want 0 or more", o.demo)
	case o.demo > 0 && o.load.Rate != 0:
		return errors.New("-demo and -load: want one of them")
	case (o.demo > 0 || o.load.Rate != 0) && o.tui:
		return errors.New("-tui draws, and so do -demo and -load: give one of them")
	case o.service >= 1<<32-1:
		return fmt.Errorf("-service is %d, want below %d", o.service, uint32(1<<32-1))
	}
	if o.load.Rate != 0 {
		if err := o.load.Validate(); err != nil {
			return err
		}
	}
	return o.rpc.Validate()
}

// adapt sets what was not given to what a demonstration or a load needs.
func (o *options) adapt(given map[string]bool) {
	if o.load.Rate > 0 && !given["bundle"] {
		o.bundle = loadBundle
	}
	if o.demo == 0 && o.load.Rate == 0 {
		return
	}
	if !given["slot"] {
		o.slot = demoSlot
	}
	if !given["http"] {
		o.http = "127.0.0.1:0" // another node may have the usual port
	}
}

// profilesFor are the host names by which profiles may be asked for; nil without -pprof.
func (o *options) profilesFor() []string {
	if !o.pprof {
		return nil
	}
	return append([]string{}, o.rpc.VHosts...)
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
