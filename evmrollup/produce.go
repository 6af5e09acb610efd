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

// ErrTime is wrapped by the error of a time of a block that is not after the time of the
// newest one, or after MaxTime.
var ErrTime = errors.New("evmrollup: invalid time of a block")

// MaxTime is the latest time that a developer can set, in Unix seconds: the end of the year
// 9999, after which many programs have no dates. Blocks go on from there.
const MaxTime = 253_402_300_799

// production decides when blocks are made and which time they have. Its zero value makes
// blocks of waiting transactions at the time of the machine's clock; developers change it.
type production struct {
	mu sync.Mutex
	// began is set if a slot has begun since the last block that was not full.
	began bool
	// manual is set if no blocks are made for waiting transactions.
	manual bool
	// upTo is the number of the last block that Mine orders, and edited that of the last one
	// that an edit orders. Both are made even without transactions.
	upTo, edited uint64
	// newest is the number of the newest block that was begun.
	newest uint64
	// every is the time between blocks that are made even without transactions; 0: there are
	// none. last is when the newest block was made, or every was set.
	every time.Duration
	last  time.Time
	// offset is added to the clock, in seconds. next is the time of the next block in Unix
	// seconds, or 0.
	offset int64
	next   uint64
	// baseFee is that of the next block, in wei per gas, or nil. gasLimit is that of all later
	// blocks, or 0.
	baseFee  *big.Int
	gasLimit uint64
	// apart is the least time between a block and its parent, in seconds.
	apart uint64
	// spaced are blocks that Mine orders whose time is a number of seconds after their parent's.
	spaced []spacing
}

// spacing has the numbers of blocks, and the seconds between each of them and its parent.
type spacing struct{ first, last, seconds uint64 }

// order has the conditions on which a block is made.
type order struct {
	empty bool // also without transactions
	bare  bool // without the transactions that wait, and at the time of its parent
}

// demand has the transactions for which a block is made.
type demand struct {
	runs   int  // number of those that can run
	full   int  // number of those that make a block full
	parked bool // some wait for a lower base fee, and an empty block lowers it
}

// due returns how a block must be made, and false if none must. The block then counts as
// begun. A slot in which transactions only wait for a lower base fee has an empty block, as on
// Ethereum: the base fee depends on the blocks alone, so that it does not change without them.
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
		o.empty = d.runs == 0
		due, p.began = p.began, false
	}
	if due {
		p.newest = number
	}
	return o, due
}

// gone notes that there is no block with a number: it was not made, or is undone.
func (p *production) gone(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = min(p.newest, number-1)
}

// orderEdit orders the next block that begins, and returns its number.
func (p *production) orderEdit(head uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := max(head, p.newest) + 1
	p.edited = max(p.edited, number)
	return number
}

// after returns the time of a block with a number in Unix seconds, if its parent has the given
// one.
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

// clock is a reading of the clock of the blocks in Unix seconds: the time now, and the time that
// was set for the next block, or 0.
type clock struct{ now, next uint64 }

// read reads the clock.
func (p *production) read() clock {
	p.mu.Lock()
	defer p.mu.Unlock()
	return clock{uint64(time.Now().Unix() + p.offset), p.next}
}

// set lets the clock go on from an earlier reading.
func (p *production) set(c clock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.offset = c.next, int64(c.now)-time.Now().Unix()
}

// change sets the fields of the next header that a developer has set.
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

// made notes the time and the base fee of the newest block. If blocks that are apart are faster
// than the clock, the clock goes with them, so that IncreaseTime counts from the newest one.
func (p *production) made(at uint64, baseFee *big.Int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if p.apart > 0 {
		p.offset = max(p.offset, int64(at)-p.last.Unix())
	}
	if at >= p.next {
		p.next = 0
	}
	if p.baseFee != nil && p.baseFee.Cmp(baseFee) == 0 {
		p.baseFee = nil
	}
}

// final notes that blocks up to a number are not made again.
func (p *production) final(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spaced = slices.DeleteFunc(p.spaced, func(s spacing) bool { return s.last <= number })
}

// SlotBegan lets the next block be made, even if it is not full. Otherwise blocks
// are made when they are full.
func (c *Chain) SlotBegan() {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.began = true
}

// Mine lets a number of blocks be made, at once and even without transactions, after those
// of earlier calls. If seconds is not 0, it is the distance of their times. Mine returns the
// number of the last one, which begins after the call.
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

// SetAutomine sets whether blocks are made for waiting transactions, which is so at first,
// or only by Mine and for edits.
func (c *Chain) SetAutomine(on bool) {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.manual = !on
}

// SetInterval lets a block be made if there was none for this time, even without
// transactions and with automine off. 0, which is the default, means never. The builder
// asks for a block at each slot.
func (c *Chain) SetInterval(every time.Duration) {
	c.production.mu.Lock()
	defer c.production.mu.Unlock()
	c.production.every, c.production.last = every, time.Now()
}

// SetApart sets the least time between a block and its parent, in seconds. It is 0 at first:
// blocks can be faster than one per second, and then share one. With 1, blocks that are
// faster are ahead of the clock, as those of development nodes are.
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

// IncreaseTime moves the clock of later blocks forward, and returns by how many seconds it
// is now ahead of the machine's. The error wraps ErrTime if it would be after MaxTime.
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

// SetNextBaseFee sets the base fee of the next block, in wei per gas. Those of later blocks follow
// from it. The error wraps ErrEdit if it has more than 64 bits.
func (c *Chain) SetNextBaseFee(wei *big.Int) error {
	if !wei.IsUint64() {
		return fmt.Errorf("%w: base fee %v wei, want below 2^64", ErrEdit, wei)
	}
	p := &c.production
	p.mu.Lock()
	p.baseFee = new(big.Int).Set(wei)
	p.mu.Unlock()
	// Transactions that wait for a lower base fee can run now, or those that could run wait.
	c.pool.Reset(txpool.Head{BaseFee: wei, Touched: []common.Address{}})
	return nil
}

// SetGasLimit sets the gas limit of all later blocks. The error wraps ErrEdit. The pool goes on
// to refuse transactions with more gas than Rules.GasLimit.
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

// mostBlockGas is executed in some seconds.
const mostBlockGas = 1_000_000_000

// SetNextTime sets the time of the next block, in Unix seconds. The clock goes on from
// there. The error wraps ErrTime.
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
