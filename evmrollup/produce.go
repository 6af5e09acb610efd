package evmrollup

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/jamq/jamq/txpool"
)

// ErrTime is returned if a developer sets a block time that is not later than the
// newest block, or that is later than MaxTime.
var ErrTime = errors.New("evmrollup: invalid time of a block")

// MaxTime is the latest block time that a developer can set, in Unix seconds. It is the
// end of the year 9999, the last year that many programs can represent. Later blocks
// may nevertheless continue beyond it.
const MaxTime = 253_402_300_799

// production decides when a block is made and which time the block has. The zero value
// makes a block when the pool has transactions, with the time of the machine's clock.
// Developers can change both through the methods of Chain.
type production struct {
	mu sync.Mutex
	// began is true if the present JAM slot may still get a block that is not full: the slot
	// has begun, and only full blocks were made in it so far.
	began bool
	// manual is true if transactions in the pool do not cause a block. Blocks are then made
	// only by Mine, by edits and at intervals.
	manual bool
	// upTo is the last block number that Mine has ordered, and edited is the last that an
	// edit has ordered. Blocks up to these numbers are made even if they have no
	// transactions.
	upTo, edited uint64
	// newest is the number of the newest block whose execution has begun.
	newest uint64
	// every is the time after which a block is made even without transactions, or 0. last
	// is the time at which the newest block was made, or at which every was set.
	every time.Duration
	last  time.Time
	// offset is added to the machine's clock, in seconds. next is the Unix time that a
	// developer has set for the next block, or 0.
	offset int64
	next   uint64
	// baseFee is the base fee that a developer has set for the next block, in wei per gas,
	// or nil. gasLimit is the gas limit that a developer has set for all later blocks, or
	// 0.
	baseFee  *big.Int
	gasLimit uint64
	// apart is the minimum time between a block and its parent, in seconds.
	apart uint64
	// spaced contains the blocks that Mine has ordered with a fixed time between them.
	spaced []spacing
}

// spacing is a range of block numbers, and the time between two of these blocks in
// seconds.
type spacing struct{ first, last, seconds uint64 }

// order describes how a block must be made.
type order struct {
	empty bool // also without transactions
	bare  bool // without the transactions that wait, and at the time of its parent
}

// demand describes the waiting transactions, from which due decides whether a block
// is needed.
type demand struct {
	runs   int  // number of those that can run
	full   int  // number of those that make a block full
	parked bool // some wait for a lower base fee, and an empty block lowers it
}

// due decides whether the block with the given number must be made now. The order tells
// whether that block may be empty.
func (p *production) due(number uint64, d demand) (o order, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case number <= p.upTo, p.every > 0 && time.Since(p.last) >= p.every:
		o, due = order{empty: true}, true
	case number <= p.edited:
		o, due = order{empty: true, bare: true}, true
	case p.manual || d.runs == 0 && !d.parked:
	case d.runs >= d.full:
		due = true
	default:
		// If no transaction can run, all of them offer less than the base fee. Only blocks
		// lower the base fee, so an empty block is made, as on Ethereum.
		o.empty = d.runs == 0
		due, p.began = p.began, false
	}
	if due {
		// From here on, an order of Mine or of an edit is for a later block, because this one
		// is being executed.
		p.newest = number
	}
	return o, due
}

// gone is called if a block was undone or could not be made, so that its number counts as
// not made.
func (p *production) gone(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = min(p.newest, number-1)
}

// orderEdit orders a block for an edit, and returns its number.
func (p *production) orderEdit(head uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	// This is the next block whose execution has not begun yet.
	number := max(head, p.newest) + 1
	p.edited = max(p.edited, number)
	return number
}

// after returns the Unix time for the block with the given number, whose parent has the
// time parent.
func (p *production) after(parent, number uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.spaced {
		if s.first <= number && number <= s.last {
			return parent + s.seconds
		}
	}
	least := max(parent, parent+p.apart) // which may overflow
	if p.next > 0 {
		return max(least, p.next)
	}
	return max(least, uint64(time.Now().Unix()+p.offset))
}

// clock is a reading of the clock that determines block times. now is the Unix time in
// seconds, and next is the time that was set for the next block, or 0.
type clock struct{ now, next uint64 }

// read returns the present reading of the clock.
func (p *production) read() clock {
	p.mu.Lock()
	defer p.mu.Unlock()
	return clock{uint64(time.Now().Unix() + p.offset), p.next}
}

// set makes the clock continue from an earlier reading.
func (p *production) set(c clock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.offset = c.next, int64(c.now)-time.Now().Unix()
}

// change puts the base fee and gas limit that a developer has set into the next header.
func (p *production) change(h *types.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.baseFee != nil {
		h.BaseFee = new(big.Int).Set(p.baseFee)
	}
	if p.gasLimit != 0 {
		h.GasLimit = p.gasLimit
	}
}

// made records the time and the base fee of the newest block.
func (p *production) made(at uint64, baseFee *big.Int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if p.apart > 0 {
		// Blocks with a minimum time between them may be made faster, so their times
		// run ahead of the clock. Move the clock, so that IncreaseTime counts from the
		// newest block.
		p.offset = max(p.offset, int64(at)-p.last.Unix())
	}
	if at >= p.next {
		p.next = 0
	}
	if p.baseFee != nil && p.baseFee.Cmp(baseFee) == 0 {
		p.baseFee = nil
	}
}

// final records which blocks are final, because these are never made again.
func (p *production) final(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spaced = slices.DeleteFunc(p.spaced, func(s spacing) bool { return s.last <= number })
}

// SlotBegan informs the chain that a JAM slot has begun. The next block may then be
// made even if it is not full. Further blocks in the same slot must be full.
func (c *Chain) SlotBegan() {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.began = true
}

// Mine orders blocks in addition to those that earlier calls have ordered, and returns
// the number of the last one. The blocks are made at once, even without transactions.
// The first of them is the next block whose execution has not begun yet. If seconds is
// not 0, it is the time between two of these blocks.
func (c *Chain) Mine(blocks, seconds uint64) (last uint64) {
	head := c.ledger.Head().NumberU64()
	p := &c.production
	p.mu.Lock()
	defer p.mu.Unlock()
	before := max(p.upTo, p.edited, p.newest, head)
	p.upTo = before + blocks
	if blocks > 1 && seconds > 0 {
		p.spaced = append(p.spaced, spacing{before + 2, p.upTo, seconds})
	}
	return p.upTo
}

// SetAutomine sets whether transactions in the pool cause a block, which is the
// default. If on is false, blocks are made only by Mine, by edits and by SetInterval.
func (c *Chain) SetAutomine(on bool) {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.manual = !on
}

// SetInterval sets the time after which a block is made even without transactions, and
// even if automine is off. 0, the default, turns this off. The block is made at the
// next slot after that time, because the builder asks for a block when a slot begins.
func (c *Chain) SetInterval(every time.Duration) {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.every, c.production.last = every, time.Now()
}

// SetApart sets the minimum time between a block and its parent, in seconds. The
// default is 0: if blocks are made faster than one per second, they have equal times.
// With 1, the times of such blocks run ahead of the clock, as on development nodes.
func (c *Chain) SetApart(seconds uint64) {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.apart = seconds
}

// Automine reports whether blocks are made for waiting transactions.
func (c *Chain) Automine() bool {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	return !c.production.manual
}

// IncreaseTime moves the clock for later blocks forward. It returns how many seconds
// this clock is now ahead of the machine's clock. The error wraps ErrTime if the clock
// would pass MaxTime.
func (c *Chain) IncreaseTime(seconds uint64) (ahead int64, err error) {
	p := &c.production
	p.mu.Lock()
	defer p.mu.Unlock()
	room := max(0, MaxTime-(time.Now().Unix()+p.offset))
	if seconds > uint64(room) {
		return 0, fmt.Errorf("%w: %d seconds later, want at most %d", ErrTime, seconds, room)
	}
	p.offset += int64(seconds)
	return p.offset, nil
}

// SetNextBaseFee sets the base fee of the next block, in wei per gas. The chain's rule
// computes the base fees of later blocks from it. The error wraps ErrEdit if the base
// fee has more than 64 bits.
func (c *Chain) SetNextBaseFee(wei *big.Int) error {
	if !wei.IsUint64() {
		return fmt.Errorf("%w: base fee %v wei, want below 2^64", ErrEdit, wei)
	}
	p := &c.production
	p.mu.Lock()
	p.baseFee = new(big.Int).Set(wei)
	p.mu.Unlock()
	// A different base fee changes which transactions can run, so the pool must sort them
	// again.
	c.pool.Reset(txpool.Head{BaseFee: wei, Touched: []common.Address{}})
	return nil
}

// SetGasLimit sets the gas limit of all later blocks. The pool still refuses
// transactions with more gas than Rules.GasLimit. The error wraps ErrEdit if the gas
// limit is out of range.
func (c *Chain) SetGasLimit(gas uint64) error {
	if gas < params.TxGas || gas > mostBlockGas {
		return fmt.Errorf("%w: gas limit %d, want %d to %d", ErrEdit, gas, params.TxGas, uint64(mostBlockGas))
	}
	p := &c.production
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gasLimit = gas
	return nil
}

// mostBlockGas is the maximum gas limit that SetGasLimit accepts. A machine can execute
// this much gas in a few seconds.
const mostBlockGas = 1_000_000_000

// SetNextTime sets the time of the next block, in Unix seconds. The clock for later
// blocks continues from there. The error wraps ErrTime if the time is out of range.
func (c *Chain) SetNextTime(seconds uint64) error {
	p := &c.production
	head := c.ledger.Head().Time()
	p.mu.Lock()
	defer p.mu.Unlock()
	if seconds <= head {
		return fmt.Errorf("%w: %d is in the past, want more than %d", ErrTime, seconds, head)
	}
	if seconds > MaxTime {
		return fmt.Errorf("%w: %d, want at most %d", ErrTime, seconds, uint64(MaxTime))
	}
	p.next, p.offset = seconds, int64(seconds)-time.Now().Unix()
	return nil
}
