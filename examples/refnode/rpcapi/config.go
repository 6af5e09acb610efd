package rpcapi

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jamq/jamq/txpool"
)

// ErrInvalidConfig is wrapped by every error of Config.Validate.
var ErrInvalidConfig = errors.New("rpcapi: invalid config")

// Namespaces that the node has. Admin is not among those that everybody can be given.
var namespaces = []string{"eth", "net", "web3", "txpool", "jam", "debug"}

// Config says who may ask for what, and how much. Begin with [DefaultConfig]. Where geth has the same setting, name, meaning and default are geth's.
type Config struct {
	// API are the namespaces that everybody may call, out of eth, net, web3, txpool, jam and debug. Tracing is expensive: where strangers
	// reach the node, leave debug out. Whoever has a token may call all of them, and admin.
	API []string
	// CORS are the origins whose scripts may read answers over HTTP; "*" is all, none is none.
	CORS []string
	// VHosts are the host names by which the node may be asked over HTTP, so that no foreign name can be bound to its address; "*" is all. An IP
	// address is always good.
	VHosts []string
	// Origins are the origins whose scripts may open a WebSocket; "*" is all, none is this machine.
	Origins []string
	// Secret is the key of the tokens (HS256, as of geth's engine API: "Authorization: Bearer …", issued within the last minute), 32 bytes. Without
	// one nobody is admin.
	Secret []byte
	// BatchItems bounds the calls in a batch, BatchBytes the bytes of its answer. BodyBytes bounds a request, over HTTP and WebSocket.
	BatchItems, BatchBytes, BodyBytes int
	// RequestTime bounds an HTTP request, from its first byte to the answer's last.
	RequestTime time.Duration
	// GasCap bounds the gas and CallTime the time of eth_call, eth_estimateGas, eth_createAccessList and every trace.
	GasCap   uint64
	CallTime time.Duration
	// MaxLogs bounds the logs of one answer, LogRange the blocks that it looks at, LogTerms the addresses, and the topics at a place, of a query.
	MaxLogs, LogTerms int
	LogRange          uint64
	// FilterTime is after how long a filter is gone that nobody asked about.
	FilterTime time.Duration
	// MaxSubscriptions bounds filters and subscriptions together, of all clients, of which those for pending transactions count a hundredfold; a source can have
	// a tenth.
	MaxSubscriptions int
	// Limits is how much a source may ask, which is an IPv4 address or the first 64 bits of an IPv6 address: calls that cost more than a
	// look are its Txs, and all that is sent to the node its Bytes. Somebody with a token is not limited.
	Limits txpool.LimiterConfig
	// LimitLoopback says that programs on this machine are limited too. A proxy is one: let it limit, or set this.
	LimitLoopback bool
}

// DefaultConfig returns geth's defaults, and 200 calls and a megabyte per second for a source.
func DefaultConfig() Config {
	limits := txpool.DefaultLimiterConfig()
	limits.Source = txpool.Rate{Txs: 200, TxBurst: 200 * burstSeconds, Bytes: 1e6, ByteBurst: 16e6}
	limits.Global = txpool.Rate{}
	limits.Methods = map[string]txpool.Rate{
		"eth_sendRawTransaction": {Txs: 2000, Bytes: 16e6},
		"debug":                  {Txs: 20},
	}
	return Config{
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
		LogTerms:    1000,
		FilterTime:  5 * time.Minute,

		MaxSubscriptions: 10_000,
		Limits:           limits,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	for _, name := range c.API {
		if !slices.Contains(namespaces, name) {
			return fmt.Errorf("%w: API names %q, want some of %v", ErrInvalidConfig, name, namespaces)
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
		{"FilterTime", c.FilterTime, c.FilterTime > 0}, {"MaxSubscriptions", c.MaxSubscriptions, c.MaxSubscriptions > 0},
	} {
		if !f.ok {
			return fmt.Errorf("%w: %s is %v, want more than 0", ErrInvalidConfig, f.field, f.have)
		}
	}
	if c.Limits.Source.ByteBurst != 0 && c.Limits.Source.ByteBurst < c.BodyBytes {
		return fmt.Errorf("%w: Limits.Source.ByteBurst is %d, want at least the BodyBytes, %d", ErrInvalidConfig, c.Limits.Source.ByteBurst, c.BodyBytes)
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("%w: Limits: %w", ErrInvalidConfig, err)
	}
	return nil
}

// RegisterFlags adds the flags that set the config, with its values as defaults.
// All names except the last two are geth's.
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
	list(&c.API, "http.api", "`namespaces` that callers without a token may use; leave out debug if strangers reach the node")
	list(&c.CORS, "http.corsdomain", "`origins` whose scripts may read answers over HTTP; * allows all")
	list(&c.VHosts, "http.vhosts", "host `names` that requests may address; * allows all")
	list(&c.Origins, "ws.origins", "`origins` whose scripts may open a WebSocket; * allows all")
	fs.Func("authrpc.jwtsecret", "`file` with the key of administrators' tokens (HS256), 32 bytes in hex; created if it does not exist; empty: no administrators", func(path string) (err error) {
		c.Secret, err = ReadSecret(path)
		return err
	})
	fs.IntVar(&c.BatchItems, "rpc.batch-request-limit", c.BatchItems, "maximum `number` of calls in a batch")
	fs.IntVar(&c.BatchBytes, "rpc.batch-response-max-size", c.BatchBytes, "maximum `size` of the answer to a batch, in bytes")
	fs.Uint64Var(&c.GasCap, "rpc.gascap", c.GasCap, "maximum `gas` of eth_call, eth_estimateGas, eth_createAccessList and traces")
	fs.DurationVar(&c.CallTime, "rpc.evmtimeout", c.CallTime, "maximum time of eth_call, eth_estimateGas, eth_createAccessList and traces")
	fs.IntVar(&c.LogTerms, "rpc.logquerylimit", c.LogTerms, "maximum `number` of addresses, and of topics per position, in a query for logs")
	fs.Uint64Var(&c.LogRange, "rpc.rangelimit", c.LogRange, "maximum `number` of blocks that a query for logs reads")
	fs.Func("rpc.ratelimit", fmt.Sprintf("expensive `calls` per second and source, with bursts of %d seconds; 0: no limit (default %g)",
		burstSeconds, c.Limits.Source.Txs), c.setRate)
	fs.BoolVar(&c.LimitLoopback, "rpc.ratelimit.loopback", c.LimitLoopback, "apply -rpc.ratelimit to programs on this machine too")
}

// burstSeconds is the size of a burst, in seconds of the permitted rate.
const burstSeconds = 5

// setRate sets the rate of a source and its burst. Validate refuses values out of
// range.
func (c *Config) setRate(text string) error {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	c.Limits.Source.Txs, c.Limits.Source.TxBurst = rate, int(max(-1, min(math.Ceil(burstSeconds*rate), 1e9)))
	return nil
}
