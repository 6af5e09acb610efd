package main

import (
	"crypto"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/examples/refnode/load"
	"github.com/jamq/jamq/submit/codec"
)

// options are the command's flags.
type options struct {
	http, metrics      string
	dataDir, spec      string
	jam                string
	key                crypto.Signer
	version            codec.Version
	service, keep      uint64
	slot               time.Duration
	demo, bundle       int
	pool, poolSender   int
	load               load.Config
	seed               uint64
	loss, skip         float64
	chainID            uint64
	dev                bool
	verbose, pprof     bool
	lab, genesis       bool
	rotate             bool
	exportTo, importOf string
	admin              string
	args               []string // after the flags
	rpc                rpcapi.Config
	cluster            pglog.Config
}

// demoSlot is the length of a slot in a demonstration without -slot, and devSlot that in
// developer mode.
const (
	demoSlot = 250 * time.Millisecond
	devSlot  = 100 * time.Millisecond
)

// loadBundle is the maximum number of transactions in a block under load without
// -bundle. The gas limit of a block admits that many transfers.
const loadBundle = 1400

// parse reads the flags of the command and refuses combinations that contradict
// each other.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := newOptions()
	fs := flag.NewFlagSet("refnode", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.register(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.args = fs.Args()
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := o.check(given); err != nil {
		return nil, err
	}
	o.adapt(given)
	return o, nil
}

// newOptions returns options with the defaults of other packages.
func newOptions() *options {
	o := &options{key: devkeys.Builder(), rpc: rpcapi.DefaultConfig(), cluster: pglog.DefaultConfig("", "refnode")}
	o.rpc.Client = "jamq-refnode/v0.1.0"
	return o
}

func (o *options) register(fs *flag.FlagSet) {
	fs.StringVar(&o.http, "http", "127.0.0.1:8545", "`address` of JSON-RPC over HTTP and WebSocket, and of the live page")
	fs.StringVar(&o.metrics, "metrics", "", "`address` of /metrics, /healthz and /readyz for operators; empty: that of -http")
	fs.StringVar(&o.dataDir, "datadir", "", "`directory` for blocks, queue and pool, so that the node survives a kill; empty: keep them in memory")
	fs.Uint64Var(&o.keep, "history.blocks", 0, "`number` of final blocks of which -datadir keeps bodies, receipts and index, at least 256; 0: all")
	fs.StringVar(&o.exportTo, "export", "", "write the node in -datadir, whose blocks must all be final, to a new `file`, and exit")
	fs.StringVar(&o.importOf, "import", "", "make -datadir from a `file` that -export wrote, and exit")
	fs.BoolVar(&o.genesis, "genesis", false, "print the genesis state (JIP-4) that -jam needs for the rollup's service, and exit; with -datadir after its -import")
	fs.StringVar(&o.spec, "spec", "tiny", "`constants` of the embedded JAM chain: tiny or full")
	fs.DurationVar(&o.slot, "slot", 6*time.Second, "length of a slot, at least about 20ms; -demo and -load use 250ms, and -dev 100ms, unless this flag is given")
	fs.BoolVar(&o.dev, "dev", false, "developer mode: short slots, and the node signs for its accounts and answers every origin; it is on unless this flag, -datadir, -jam, -demo or -load is given")
	fs.IntVar(&o.demo, "demo", 0, "send this `number` of transactions, check that each becomes final exactly once, and exit; 0: off")
	fs.IntVar(&o.load.Rate, "load", 0, "send this `number` of transactions per second, report rates and latencies, and exit; 0: off")
	fs.DurationVar(&o.load.Duration, "load.for", 30*time.Second, "how long -load sends, at least 1s")
	fs.IntVar(&o.load.Accounts, "load.accounts", 500, "`number` of accounts that -load sends from; accounts beyond the ten funded ones are funded first")
	fs.BoolVar(&o.load.Mixed, "load.mixed", false, "let -load send all transaction types and contract calls; default: transfers only")
	fs.Uint64Var(&o.seed, "seed", 1, "`seed` of the embedded JAM chain")
	fs.Float64Var(&o.loss, "loss", 0, "`share` of submissions that the embedded chain loses, 0 to 1")
	fs.Float64Var(&o.skip, "skip", 0, "`share` of slots of the embedded chain without a block, 0 to less than 1")
	fs.BoolVar(&o.rotate, "rotate", false, "give each epoch of the embedded chain its own validators, to try jam_getHandoff")
	fs.StringVar(&o.jam, "jam", "", "`URL` of a JAM node's RPC, ws://host:port, whose chain is used instead of an embedded one")
	fs.StringVar(&o.cluster.URL, "cluster", "", "`URL` of a PostgreSQL database, postgres://…, whose log this node shares with other replicas of the rollup; it needs -jam, -datadir and the same -authrpc.jwtsecret for all")
	fs.StringVar(&o.cluster.Name, "cluster.name", o.cluster.Name, "`name` of the log in the database")
	fs.StringVar(&o.cluster.Address, "cluster.address", "", "`URL` of this node's RPC for the other replicas; empty: http:// and the address of -http")
	fs.BoolVar(&o.cluster.Synchronous, "cluster.synchronous", false, "promise that no standby of the database is ever promoted that lacks an acknowledged write, so that packages go on at once after a promotion")
	fs.DurationVar(&o.cluster.Lease, "cluster.lease", o.cluster.Lease, "time after which another replica leads if the leading one does not answer")
	fs.TextVar(&o.version, "gp", codec.V072, "`version` of the Gray Paper that the JAM chain follows, for the encoding of packages: 0.7.2 or 0.8.0")
	fs.Uint64Var(&o.service, "service", uint64(node.DefaultService), "`ID` of the rollup's service on the JAM chain")
	fs.Func("builderkey", "`file` with the Ed25519 key that signs packages (PKCS #8 in PEM), as \"openssl genpkey -algorithm ed25519\" makes it; empty: a development key, which is public", func(path string) (err error) {
		o.key, err = devkeys.ReadBuilder(path)
		return err
	})
	fs.IntVar(&o.bundle, "bundle", 5, "maximum `number` of transactions in a block; -load uses 1400 unless this flag is given")
	fs.IntVar(&o.pool, "pool", 20_000, "maximum `number` of pending, and of queued, transactions in the pool")
	fs.IntVar(&o.poolSender, "pool.sender", 64, "maximum `number` of transactions of one sender in the pool")
	fs.Uint64Var(&o.chainID, "chainid", node.DefaultChainID, "chain `ID` of the rollup")
	fs.StringVar(&o.admin, "admin", "", "call a method of the running node with this `URL` as an administrator, print the answer, and exit; the method and its parameters follow the flags")
	fs.BoolVar(&o.lab, "lab", false, "let every visitor of the page inject faults into the embedded JAM chain, or kill replicas with -cluster")
	fs.BoolVar(&o.pprof, "pprof", false, "serve Go's profiles at /debug/pprof/ beside /metrics, on IP addresses and the names in -http.vhosts")
	fs.BoolVar(&o.verbose, "v", false, "log at debug level")
	o.rpc.RegisterFlags(fs)
}

// check refuses values and combinations of flags. given holds the names of the
// flags on the command line.
func (o *options) check(given map[string]bool) error {
	for _, name := range []string{"spec", "slot", "seed", "loss", "skip", "rotate", "lab"} {
		if o.jam != "" && given[name] && !(name == "lab" && o.cluster.URL != "") {
			return fmt.Errorf("-%s configures the embedded chain and cannot be used with -jam", name)
		}
	}
	for _, name := range []string{"load.for", "load.accounts", "load.mixed"} {
		if given[name] && !given["load"] {
			return fmt.Errorf("-%s needs -load", name)
		}
	}
	if o.cluster.URL != "" && (o.jam == "" || o.dataDir == "" || len(o.rpc.Secret) == 0 || o.exportTo != "" || o.importOf != "") {
		return errors.New("-cluster needs -jam, -datadir and -authrpc.jwtsecret, and cannot be used with -export or -import")
	}
	for _, name := range []string{"export", "import"} {
		if given[name] && (o.dataDir == "" || o.demo > 0 || o.load.Rate != 0) {
			return fmt.Errorf("-%s needs -datadir, and cannot be used with -demo or -load", name)
		}
	}
	if o.genesis && (o.dev || o.jam != "" || o.demo > 0 || o.load.Rate != 0 || o.exportTo != "" || o.importOf != "") {
		return errors.New("-genesis cannot be used with -dev, -jam, -demo, -load, -export or -import")
	}
	if o.dev && (o.dataDir != "" || o.jam != "" || o.demo > 0 || o.load.Rate != 0) {
		return errors.New("-dev cannot be used with -datadir, -jam, -demo or -load")
	}
	switch {
	case o.demo < 0:
		return fmt.Errorf("-demo is %d, want 0 or more", o.demo)
	case o.demo > 0 && o.load.Rate != 0:
		return errors.New("-demo and -load cannot be used together")
	case o.service >= 1<<32-1:
		return fmt.Errorf("-service is %d, want below %d", o.service, uint32(1<<32-1))
	}
	if o.load.Rate != 0 {
		if err := o.load.Validate(); err != nil {
			return err
		}
	}
	if err := o.checkAdmin(); err != nil {
		return err
	}
	return o.rpc.Validate()
}

// adapt sets the defaults of developer mode, of a demonstration or of a load for flags
// that were not given.
func (o *options) adapt(given map[string]bool) {
	if !given["dev"] {
		o.dev = o.dataDir == "" && o.jam == "" && o.demo == 0 && o.load.Rate == 0 && !o.genesis
	}
	if o.dev {
		o.adaptDev(given)
	}
	if o.cluster.URL != "" && o.cluster.Address == "" {
		o.cluster.Address = "http://" + o.http
	}
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
		o.http = "127.0.0.1:0" // the usual port may be taken
	}
}

// adaptDev sets the defaults of developer mode. Browsers may read the node from any page,
// as pages under development need it; its keys are public.
func (o *options) adaptDev(given map[string]bool) {
	o.rpc.Dev = true
	if !given["slot"] {
		o.slot = devSlot
	}
	if !given["http.corsdomain"] {
		o.rpc.CORS = []string{"*"}
	}
	if !given["ws.origins"] {
		o.rpc.Origins = []string{"*"}
	}
}

// profilesFor returns the host names under which profiles are served; nil without
// -pprof.
func (o *options) profilesFor() []string {
	if !o.pprof {
		return nil
	}
	return append([]string{}, o.rpc.VHosts...)
}

func (o *options) config(stderr io.Writer) (lab.Config, error) {
	specs := map[string]jamq.ChainSpec{"tiny": jamq.Tiny(), "full": jamq.Full()}
	spec, ok := specs[o.spec]
	if !ok {
		return lab.Config{}, fmt.Errorf("-spec is %q, want tiny or full", o.spec)
	}
	cfg := lab.DefaultConfig(spec, o.slot, o.seed)
	cfg.ChainID = new(big.Int).SetUint64(o.chainID)
	cfg.DataDir, cfg.JAMURL, cfg.Service = o.dataDir, o.jam, jamq.ServiceID(o.service)
	cfg.Key = o.key
	cfg.Version, cfg.KeepBlocks, cfg.Cluster = o.version, o.keep, o.cluster
	cfg.MaxPool, cfg.MaxPerSender = o.pool, o.poolSender
	if o.cluster.URL != "" {
		cfg.Authorize = guard.Auth(o.rpc.Secret)
	}
	cfg.MaxTxsPerBundle, cfg.Lab, cfg.Dev = o.bundle, o.lab, o.dev
	cfg.JAM.LossProbability, cfg.JAM.SkipProbability, cfg.JAM.NewValidators = o.loss, o.skip, o.rotate
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	} else if o.demo > 0 || o.load.Rate > 0 {
		level = slog.LevelError
	}
	cfg.Logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return cfg, nil
}
