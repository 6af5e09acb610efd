package rpcapi

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/ratelimit"
)

// ErrInvalidConfig is wrapped by every error of Config.Validate.
var ErrInvalidConfig = errors.New("rpcapi: invalid config")

// namespaces lists the RPC namespaces that Config.API may contain. It omits admin,
// because that namespace always requires a token.
var namespaces = []string{"eth", "net", "web3", "txpool", "jam", "debug", "trace"}

// Config defines which clients may call which methods, and how often. Start from
// [DefaultConfig]. A setting that also exists in geth has the same name, meaning
// and default as in geth.
type Config struct {
	// Client is the name and version of the program, as web3_clientVersion returns it.
	Client string
	// API lists the namespaces that clients may call without a token: eth, net,
	// web3, txpool, jam, debug and trace. Tracing is expensive, so leave out
	// debug and trace if untrusted clients can reach the node. A client with a
	// token may call all of these namespaces, and also admin.
	API []string
	// APIs are additional RPC methods of the host. A method that has the same name as a
	// method of this package replaces it. If Authenticated is set, only clients with a
	// token may call the methods; otherwise every client may.
	APIs []rpc.API
	// Page is the handler for web browsers. It receives all GET and HEAD requests, and all
	// requests to paths below /lab/. If Page is nil, the node serves no web page.
	Page http.Handler
	// Dev turns on developer mode, in which every client can use the keys of the development
	// accounts, and change blocks and accounts.
	Dev bool
	// CORS lists the origins whose scripts may read answers over HTTP. "*"
	// allows all origins; an empty list allows none.
	CORS []string
	// VHosts lists the host names that HTTP requests may use. The check prevents an attacker
	// from binding a different name to the node's address (DNS rebinding). "*" allows all
	// names. IP addresses are always allowed.
	VHosts []string
	// Origins lists the origins whose scripts may open a WebSocket. "*" allows
	// all origins; an empty list allows only this machine.
	Origins []string
	// Secret is the 32-byte key that signs the tokens of administrators. As in geth's
	// engine API, a client sends a token (HS256) in the header "Authorization: Bearer …",
	// and the token must have been issued within the last minute. If Secret is empty, there
	// are no administrators.
	Secret []byte
	// BatchItems is the maximum number of calls in a batch. BodyBytes is the
	// maximum size in bytes of a request over HTTP or WebSocket. BatchBytes is
	// the maximum size in bytes of each of these:
	//
	//   - the answer to a batch
	//   - the data that all calls of an eth_simulateV1 return together
	//   - an answer of the namespace trace
	BatchItems, BatchBytes, BodyBytes int
	// RequestTime is the maximum duration of an HTTP request, from the first
	// byte of the request to the last byte of the answer.
	RequestTime time.Duration
	// GasCap is the maximum gas, and CallTime the maximum duration, of each
	// call that executes code: eth_call, eth_estimateGas, eth_createAccessList,
	// eth_simulateV1 and all traces.
	GasCap   uint64
	CallTime time.Duration
	// MaxLogs is the maximum number of logs in one answer. LogTerms is the maximum number of
	// addresses in a query, and of topics at each position. LogRange is the maximum number of
	// blocks that a query covers. TraceRange is the maximum number of blocks that trace_filter
	// executes again.
	MaxLogs, LogTerms    int
	LogRange, TraceRange uint64
	// FilterTime is the lifetime of a filter after its client last used it.
	FilterTime time.Duration
	// MaxSubscriptions is the maximum number of filters and subscriptions of all clients
	// together. A filter or subscription for pending transactions counts as a hundred,
	// because it needs a buffer. A single source, which is an IPv4 address or the first 64
	// bits of an IPv6 address, may use a tenth of the maximum.
	MaxSubscriptions int
	// Limits are the rate limits for each source and for each of its connections (HTTP or
	// WebSocket). A source is an IPv4 address, or the first 64 bits of an IPv6 address. The
	// limits on transactions apply to all calls that cost more than a lookup, and the
	// limits on bytes apply to everything that the client sends. Clients with a token are
	// not limited. If Surge.Pressure is nil, the node uses the fill level of its pool.
	Limits ratelimit.Config
	// LimitLoopback also applies the limits to clients on this machine. If the clients of
	// the node come through a reverse proxy on this machine, either set this field or let
	// the proxy limit its clients.
	LimitLoopback bool
}

// sendMethod is the method that adds transactions to the pool.
const sendMethod = "eth_sendRawTransaction"

// DefaultConfig returns geth's defaults. It limits each source to 200 calls and one
// megabyte per second, and each connection to half of that.
func DefaultConfig() Config {
	limits := ratelimit.DefaultConfig()
	limits.Source = ratelimit.Rate{Txs: 200, TxBurst: 200 * burstSeconds, Bytes: 1e6, ByteBurst: 16e6}
	limits.Connection = ratelimit.Rate{Txs: 100, TxBurst: 100 * burstSeconds, Bytes: 5e5, ByteBurst: 8e6}
	limits.Global = ratelimit.Rate{}
	limits.Surge.Methods = []string{sendMethod}
	limits.Methods = map[string]ratelimit.Rate{
		sendMethod: {Txs: 2000, Bytes: 16e6},
		"debug":    {Txs: 20},
	}
	return Config{
		Client:      "jamq-evmrollup/v0.1.0",
		API:         slices.Clone(namespaces),
		VHosts:      []string{"localhost"},
		BatchItems:  1000,
		BatchBytes:  25_000_000,
		BodyBytes:   5 * 1024 * 1024,
		RequestTime: 30 * time.Second,
		GasCap:      50_000_000,
		CallTime:    5 * time.Second,
		MaxLogs:     10_000,
		LogRange:    100_000,
		TraceRange:  100, // as in reth
		LogTerms:    1000,
		FilterTime:  5 * time.Minute,

		MaxSubscriptions: 10_000,
		Limits:           limits,
	}
}

// Validate returns an error that names the first field whose value is out of range. The error wraps
// [ErrInvalidConfig].
func (c *Config) Validate() error {
	for _, name := range c.API {
		if !slices.Contains(namespaces, name) {
			return fmt.Errorf("%w: API contains %q, want only names out of %v", ErrInvalidConfig, name, namespaces)
		}
	}
	if len(c.Secret) != 0 && len(c.Secret) != secretSize {
		return fmt.Errorf("%w: Secret has %d bytes, want %d or none", ErrInvalidConfig, len(c.Secret), secretSize)
	}
	for _, f := range []struct {
		field string
		have  any
		ok    bool
	}{
		{"BatchItems", c.BatchItems, c.BatchItems > 0}, {"BatchBytes", c.BatchBytes, c.BatchBytes > 0}, {"BodyBytes", c.BodyBytes, c.BodyBytes > 0},
		{"RequestTime", c.RequestTime, c.RequestTime > 0}, {"GasCap", c.GasCap, c.GasCap > 0}, {"CallTime", c.CallTime, c.CallTime > 0},
		{"MaxLogs", c.MaxLogs, c.MaxLogs > 0}, {"LogTerms", c.LogTerms, c.LogTerms > 0}, {"LogRange", c.LogRange, c.LogRange > 0},
		{"TraceRange", c.TraceRange, c.TraceRange > 0},
		{"FilterTime", c.FilterTime, c.FilterTime > 0}, {"MaxSubscriptions", c.MaxSubscriptions, c.MaxSubscriptions > 0},
	} {
		if !f.ok {
			return fmt.Errorf("%w: %s is %v, want more than 0", ErrInvalidConfig, f.field, f.have)
		}
	}
	for _, f := range []struct {
		field string
		have  int
	}{{"Source", c.Limits.Source.ByteBurst}, {"Connection", c.Limits.Connection.ByteBurst}} {
		if f.have != 0 && f.have < c.BodyBytes {
			return fmt.Errorf("%w: Limits.%s.ByteBurst is %d, want at least BodyBytes, %d", ErrInvalidConfig, f.field, f.have, c.BodyBytes)
		}
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("%w: Limits: %w", ErrInvalidConfig, err)
	}
	return nil
}

// RegisterFlags adds flags to fs that change the configuration. The current
// values become the defaults of the flags. The flags have geth's names, except
// for those of the limits, which geth does not have.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	list := func(p *[]string, name, usage string) {
		if len(*p) > 0 {
			usage += fmt.Sprintf(" (default %q)", strings.Join(*p, ","))
		}
		fs.Func(name, usage, func(value string) error {
			*p = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		})
	}
	list(&c.API, "http.api", "`namespaces` that callers without a token may use; leave out debug and trace if strangers reach the node")
	list(&c.CORS, "http.corsdomain", "`origins` whose scripts may read answers over HTTP; * allows all")
	list(&c.VHosts, "http.vhosts", "host `names` that requests may address; * allows all")
	list(&c.Origins, "ws.origins", "`origins` whose scripts may open a WebSocket; * allows all")
	fs.Func("authrpc.jwtsecret", "`file` with the key of administrators' tokens (HS256), 32 bytes in hex; created if it does not exist; empty: no administrators", func(path string) (err error) {
		c.Secret, err = ReadSecret(path)
		return err
	})
	fs.IntVar(&c.BatchItems, "rpc.batch-request-limit", c.BatchItems, "maximum `number` of calls in a batch")
	fs.IntVar(&c.BatchBytes, "rpc.batch-response-max-size", c.BatchBytes, "maximum `size` of the answer to a batch, in bytes")
	fs.Uint64Var(&c.GasCap, "rpc.gascap", c.GasCap, "maximum `gas` of eth_call, eth_estimateGas, eth_createAccessList, eth_simulateV1 and traces")
	fs.DurationVar(&c.CallTime, "rpc.evmtimeout", c.CallTime, "maximum time of eth_call, eth_estimateGas, eth_createAccessList, eth_simulateV1 and traces")
	fs.IntVar(&c.LogTerms, "rpc.logquerylimit", c.LogTerms, "maximum `number` of addresses, and of topics per position, in a query for logs")
	fs.Uint64Var(&c.LogRange, "rpc.rangelimit", c.LogRange, "maximum `number` of blocks that a query for logs reads")
	c.registerLimits(fs)
}

// registerLimits adds the flags for Limits, which do not exist in geth.
func (c *Config) registerLimits(fs *flag.FlagSet) {
	rate := func(r *ratelimit.Rate, name, of string) {
		usage := fmt.Sprintf("expensive `calls` per second and %s, with bursts of %d seconds; 0: no limit (default %g)", of, burstSeconds, r.Txs)
		fs.Func(name, usage, func(text string) error { return setRate(r, text) })
	}
	rate(&c.Limits.Source, "rpc.ratelimit", "source")
	rate(&c.Limits.Connection, "rpc.ratelimit.connection", "connection")
	fs.IntVar(&c.Limits.Jitter, "rpc.ratelimit.jitter", c.Limits.Jitter, "maximum random addition to the time that a refused caller is asked to wait, in `permille`, 0 to 1000")
	share := func(permille *int, name, usage string) {
		fs.Func(name, fmt.Sprintf("%s (default %g)", usage, float64(*permille)/1000), func(text string) error { return setShare(permille, text) })
	}
	share(&c.Limits.Surge.Threshold, "rpc.surge", "`share` of the pool's capacity, 0 to 1, above which sends are refused at random, to be tried again after some seconds; 1: never")
	share(&c.Limits.Surge.MaxRefusal, "rpc.surge.refusal", "`share` of sends, 0 to 0.99, that is refused when the pool is full")
	underpriced := &c.Limits.Underpriced
	fs.IntVar(&underpriced.Free, "rpc.underpriced", underpriced.Free, fmt.Sprintf("`number` of underpriced transactions that a source may send within %g minutes; each further one is a strike, and %d strikes are a ban", underpriced.Window.Minutes(), c.Limits.Strikes))
	fs.BoolVar(&c.LimitLoopback, "rpc.ratelimit.loopback", c.LimitLoopback, "apply the limits to programs on this machine too")
}

// burstSeconds determines how much a client may send at once after a pause: as much as
// its rate limit allows in this number of seconds.
const burstSeconds = 5

// setRate sets a rate limit and its burst from the text of a flag.
func setRate(r *ratelimit.Rate, text string) error {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	// A number out of range is kept, because Validate refuses it later.
	r.Txs, r.TxBurst = rate, int(max(-1, min(math.Ceil(burstSeconds*rate), 1e9)))
	return nil
}

// setShare sets a share in per mille from the text of a flag.
func setShare(permille *int, text string) error {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(share) {
		return fmt.Errorf("%q is not a number", text)
	}
	// A number out of range is kept, because Validate refuses it later.
	*permille = int(math.Round(max(-1, min(share, 1000)) * 1000))
	return nil
}
