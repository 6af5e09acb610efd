package ratelimit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jamq/jamq/internal/fields"
)

// Rate is a limit on the transactions and the bytes per second. A number of 0 means no limit.
type Rate struct {
	// Txs is in transactions per second, and Bytes in bytes per second.
	Txs, Bytes float64
	// TxBurst and ByteBurst are how many transactions and bytes are allowed at once
	// after a pause. 0 means the amount of one second, but at least 1.
	TxBurst, ByteBurst int
}

func (r Rate) valid() bool {
	return r.Txs >= 0 && r.Bytes >= 0 && !math.IsInf(r.Txs+r.Bytes, 0) && r.TxBurst >= 0 && r.ByteBurst >= 0
}

// Config configures a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// Source limits everything that one source sends, for example one IP address, and
	// Connection limits each single connection of a source. By default a source may send 50
	// transactions and 256 kB per second, with bursts of 200 transactions and 1,024 kB. A
	// connection may send half of that, so that one busy connection cannot use up the whole
	// rate of its source.
	Source, Connection Rate
	// Global limits all sources together. The default is 2,000 transactions and
	// 16 MB per second.
	Global Rate
	// Methods limits all calls of a method together, for example all calls of
	// "eth_sendRawTransaction". A method that is not in the map has no such limit.
	// The default is nil.
	Methods map[string]Rate
	// Jitter is the maximum share, in per mille, by which RetryAfter is made longer at
	// random after a rate was exceeded. It prevents clients that were refused together
	// from returning together. It is between 0 and 1000; 0 adds nothing. The default is
	// 100.
	Jitter int
	// Surge configures which calls are refused while the host is busy. By default
	// no calls are.
	Surge Surge
	// MaxSources is the maximum number of sources that the limiter remembers, at
	// least 1. The default is 65,536. It forgets the least recently active source
	// first, and a forgotten source has full buckets when it returns. A party with
	// very many addresses can exploit this, but Global still limits it.
	MaxSources int
	// MaxConnections is the maximum number of connections that the limiter
	// remembers, at least 1. The default is 65,536. It forgets the least recently
	// active connection first, but Source still limits a forgotten connection.
	MaxConnections int
	// Strikes is how many strikes lead to the ban of a source, at least 1.
	// StrikeMemory is the time without offences after which a source's strikes are
	// reset to 0; it must not be negative. The defaults are 100 and ten minutes.
	Strikes      int
	StrikeMemory time.Duration
	// Invalid and Underpriced are the penalties of the two kinds of offences. By
	// default, each offence has Weight 1, and 20 offences of the kind Underpriced
	// are free within ten minutes.
	Invalid, Underpriced Penalty
	// Ban is the length of the first ban, and must be positive. Each further
	// ban is twice as long as the previous one, up to MaxBan. The defaults are
	// one minute and one day.
	Ban, MaxBan time.Duration
	// MaxBans is the maximum number of bans that the limiter remembers, at least 1. It forgets the
	// oldest ban first. The default is 16,384.
	MaxBans int
	// Now returns the current time. Nil means time.Now.
	Now func() time.Time
	// Rand returns a random number that is at least 0 and less than 1. Nil means rand.Float64 of
	// math/rand/v2. The limiter calls Now and Rand while it holds its lock, so they must not call
	// the limiter.
	Rand func() float64
}

// DefaultConfig returns the default configuration. Each field documents its
// default.
func DefaultConfig() Config {
	const kB = 1000
	return Config{
		Source:         Rate{Txs: 50, Bytes: 256 * kB, TxBurst: 200, ByteBurst: 1024 * kB},
		Connection:     Rate{Txs: 25, Bytes: 128 * kB, TxBurst: 100, ByteBurst: 512 * kB},
		Global:         Rate{Txs: 2000, Bytes: 16_000 * kB},
		Jitter:         100,
		Surge:          Surge{Threshold: 800, MaxRefusal: 900, MinRetry: time.Second, MaxRetry: 10 * time.Second},
		MaxSources:     64 * 1024,
		MaxConnections: 64 * 1024,
		Strikes:        100,
		StrikeMemory:   10 * time.Minute,
		Invalid:        Penalty{Weight: 1},
		Underpriced:    Penalty{Weight: 1, Free: 20, Window: 10 * time.Minute},
		Ban:            time.Minute,
		MaxBan:         24 * time.Hour,
		MaxBans:        16 * 1024,
	}
}

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range, with its value and the range. It returns nil if all
// fields are valid.
func (c *Config) Validate() error {
	var wrong fields.Errors
	check := wrong.Want
	const amounts = "finite numbers of at least 0"
	check(c.Source.valid(), "Source", c.Source, amounts)
	check(c.Connection.valid(), "Connection", c.Connection, amounts)
	check(c.Global.valid(), "Global", c.Global, amounts)
	for _, method := range slices.Sorted(maps.Keys(c.Methods)) {
		check(c.Methods[method].valid(), "Methods["+method+"]", c.Methods[method], amounts)
	}
	check(within(c.Jitter, 0, 1000), "Jitter", c.Jitter, "0 to 1000 per mille")
	surge := &c.Surge
	check(within(surge.Threshold, 0, 1000), "Surge.Threshold", surge.Threshold, "0 to 1000 per mille")
	check(within(surge.MaxRefusal, 0, 990), "Surge.MaxRefusal", surge.MaxRefusal, "0 to 990 per mille")
	check(surge.MinRetry > 0, "Surge.MinRetry", surge.MinRetry, "more than 0")
	check(surge.MaxRetry >= surge.MinRetry, "Surge.MaxRetry", surge.MaxRetry, fmt.Sprintf("at least MinRetry, %v", surge.MinRetry))
	check(c.MaxSources >= 1, "MaxSources", c.MaxSources, "at least 1")
	check(c.MaxConnections >= 1, "MaxConnections", c.MaxConnections, "at least 1")
	check(c.Strikes >= 1, "Strikes", c.Strikes, "at least 1")
	check(c.StrikeMemory >= 0, "StrikeMemory", c.StrikeMemory, "at least 0")
	const penalty = "no negative values, and a positive Window if Free is positive"
	check(c.Invalid.valid(), "Invalid", c.Invalid, penalty)
	check(c.Underpriced.valid(), "Underpriced", c.Underpriced, penalty)
	check(c.Ban > 0, "Ban", c.Ban, "more than 0")
	check(c.MaxBan >= c.Ban, "MaxBan", c.MaxBan, fmt.Sprintf("at least Ban, %v", c.Ban))
	check(c.MaxBans >= 1, "MaxBans", c.MaxBans, "at least 1")
	return wrong.Wrap(ErrInvalidConfig)
}

func within[T cmp.Ordered](have, least, most T) bool { return have >= least && have <= most }

func (p Penalty) valid() bool {
	return p.Weight >= 0 && p.Free >= 0 && p.Window >= 0 && (p.Free == 0 || p.Window > 0)
}

// penalty returns the penalty of an offence.
func (c *Config) penalty(o Offence) Penalty {
	if o == Underpriced {
		return c.Underpriced
	}
	return c.Invalid
}

// complete replaces nil functions by their defaults.
func (c *Config) complete() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
}
