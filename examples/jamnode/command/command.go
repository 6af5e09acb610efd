// Package command is the program jamnode without the process around it, so that a test
// can start it.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// headerTime is the time limit for the header of a request.
const headerTime = 10 * time.Second

// options are the command's flags.
type options struct {
	listen, dataDir, spec string
	slot                  time.Duration
	seed                  uint64
	loss, skip, fork      float64
	lag                   int
	version               codec.Version
	profile               string
	genesis               service.State
	verbose, stdin        bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{genesis: service.State{}}
	fs := flag.NewFlagSet("jamnode", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.listen, "listen", "127.0.0.1:19800", "`address` of JIP-2 over WebSocket")
	fs.StringVar(&o.dataDir, "datadir", "", "`directory` for the chain, so that it survives a kill; empty: keep it in memory")
	fs.StringVar(&o.spec, "spec", "tiny", "`constants` of the chain: tiny or full")
	fs.DurationVar(&o.slot, "slot", 6*time.Second, "length of a slot")
	fs.Uint64Var(&o.seed, "seed", 1, "`seed` of all random choices")
	fs.Float64Var(&o.loss, "loss", 0, "`share` of submissions that are lost, 0 to 1")
	fs.Float64Var(&o.skip, "skip", 0, "`share` of slots without a block, 0 to less than 1")
	fs.Float64Var(&o.fork, "fork", 0, "`probability` per block that a fork begins, 0 to 1")
	fs.IntVar(&o.lag, "lag", 0, "`number` of blocks between the final and the best block; 0: 3 with -fork, otherwise 2")
	fs.TextVar(&o.version, "gp", codec.V072, "`version` of the Gray Paper in which packages are encoded: 0.7.2 or 0.8.0")
	fs.StringVar(&o.profile, "profile", "strict", "`name` of the kind of node whose RPC is simulated: "+strings.Join(profileNames(), ", "))
	fs.Func("genesis", "`file` with the service of a rollup: \"genesis_state\" of JIP-4, as refnode -genesis prints it; may be repeated", o.readGenesis)
	fs.BoolVar(&o.stdin, "stdin", false, "read commands from standard input that change the faults; the command help lists them")
	fs.BoolVar(&o.verbose, "v", false, "log connections that are cut")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, nil
}

// readGenesis adds the entries of a file to the genesis state.
func (o *options) readGenesis(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec struct {
		Genesis service.State `json:"genesis_state"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	maps.Copy(o.genesis, spec.Genesis)
	return nil
}

func (o *options) config(stderr io.Writer) (jip2server.Config, error) {
	specs := map[string]jamq.ChainSpec{"tiny": jamq.Tiny(), "full": jamq.Full()}
	spec, ok := specs[o.spec]
	if !ok {
		return jip2server.Config{}, fmt.Errorf("-spec is %q, want tiny or full", o.spec)
	}
	spec.SlotDuration = o.slot
	chain := jamtest.DefaultConfig(spec, o.seed)
	chain.LossProbability, chain.SkipProbability, chain.ForkProbability = o.loss, o.skip, o.fork
	if o.fork > 0 {
		chain.MaxForkDepth, chain.FinalityLag = 2, 3
	}
	chain.Genesis = o.genesis
	if o.lag != 0 {
		chain.FinalityLag = o.lag
	}
	if err := chain.Validate(); err != nil {
		return jip2server.Config{}, err
	}
	chain.StartSlot = jamq.NewSlotClock(spec).SlotAt(time.Now())
	cfg := jip2server.DefaultConfig(chain)
	cfg.Version = o.version
	found := slices.IndexFunc(jip2server.Profiles(), func(p jip2server.Profile) bool { return p.Name == o.profile })
	if found < 0 {
		return jip2server.Config{}, fmt.Errorf("-profile is %q, want one of %s", o.profile, strings.Join(profileNames(), ", "))
	}
	cfg.Deviations = jip2server.Profiles()[found].Deviations
	level := slog.LevelError
	if o.verbose {
		level = slog.LevelDebug
	}
	cfg.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return cfg, nil
}

// profileNames returns the names of all profiles.
func profileNames() (names []string) {
	for _, p := range jip2server.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// Run is the command without the process around it, and returns the exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var cfg jip2server.Config
	if err == nil {
		cfg, err = o.config(stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "jamnode:", err)
		return exitUsage
	}
	if err := serve(ctx, cfg, o, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "jamnode:", err)
		return exitFailed
	}
	return exitOK
}

// serve runs the chain and its server until ctx ends.
func serve(ctx context.Context, cfg jip2server.Config, o *options, stdin io.Reader, stdout io.Writer) (err error) {
	if o.dataDir != "" {
		if err := os.MkdirAll(o.dataDir, 0o755); err != nil {
			return err
		}
		file, err := journal.Open(filepath.Join(o.dataDir, "chain.journal"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		cfg.Journal = file
	}
	node, err := jip2server.New(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: node, ReadHeaderTimeout: headerTime}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	var best jamq.Block
	node.View(func(c *jamtest.Chain) { best = c.Best() })
	fmt.Fprintf(stdout, "jamq JAM node: simulated %s chain, seed %d, slots of %v, at slot %d\nListening on ws://%s (JIP-2)\n",
		o.spec, o.seed, o.slot, best.Slot, listener.Addr())
	if o.stdin {
		go func() { // ends with the input or the process
			if err := obey(node, stdin, stdout); err != nil {
				fmt.Fprintf(stdout, "error: standard input: %v\n", err)
			}
		}()
	}
	defer func() {
		cancel()
		node.Cut()
		err = errors.Join(err, server.Close())
	}()
	select {
	case err := <-served:
		return err
	case err := <-ended:
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}
