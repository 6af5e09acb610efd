package jamtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jamq/jamq"
)

// Execution is the content of a package for the rollup's service: a rollup block with
// its transactions.
type Execution struct {
	// Number is the number of the rollup block. PreRoot and PostRoot are the state roots
	// before and after it; they matter only if Oracle.Guarded is true.
	Number            uint64
	PreRoot, PostRoot string
	// Txs are the names of the block's transactions.
	Txs []string
}

// Oracle checks a queue independently, by counting how often each transaction of a
// rollup was executed. It reads only the simulated chain, and nothing from the queue.
type Oracle struct {
	service jamq.ServiceID
	decode  func(payload []byte) Execution
	// Guarded simulates a service that protects itself against duplicates. It applies a
	// rollup block only if the block's number and pre-state continue the last block. It
	// ignores older blocks and buffers newer ones, so a second version of a block has no
	// effect. The default is false, because a queue must not need this protection.
	Guarded bool

	expected map[string]bool
	order    []string
	final    []Execution
}

// NewOracle returns an oracle for one service. decode returns the rollup block in the
// payload of a package.
func NewOracle(service jamq.ServiceID, decode func(payload []byte) Execution) *Oracle {
	return &Oracle{service: service, decode: decode, expected: make(map[string]bool)}
}

// Expect adds transactions that must be executed exactly once, in this order.
func (o *Oracle) Expect(txs ...string) {
	for _, tx := range txs {
		if !o.expected[tx] {
			o.expected[tx] = true
			o.order = append(o.order, tx)
		}
	}
}

// Observe records the accumulations that became final in an update. It must be called
// once for every update of the chain, in order.
func (o *Oracle) Observe(u Update) {
	for _, a := range u.Final {
		if a.Service == o.service {
			o.final = append(o.final, o.decode(a.Payload))
		}
	}
}

// Verdict is the result of a check by an oracle.
type Verdict struct {
	// Executed is the number of executions of each transaction.
	Executed map[string]int
	// Twice contains transactions that were executed more than once, in the order of
	// execution. Lost contains transactions that were expected but not executed, in the
	// expected order. Unexpected contains transactions that were executed but not expected,
	// in the order of execution.
	Twice, Lost, Unexpected []string
	// Disorder are transactions that were executed after one that was expected
	// later.
	Disorder []string
	// Blocks are the numbers of the rollup blocks in the order of execution.
	Blocks []uint64
}

// OK reports whether exactly the expected transactions were executed, once and in
// order.
func (v *Verdict) OK() bool {
	return len(v.Twice)+len(v.Lost)+len(v.Unexpected)+len(v.Disorder) == 0
}

// String returns the verdict in one line.
func (v *Verdict) String() string {
	list := func(name string, txs []string) string {
		if len(txs) == 0 {
			return ""
		}
		const few = 5
		shown := txs[:min(few, len(txs))]
		return fmt.Sprintf("; %d %s: %s", len(txs), name, strings.Join(shown, " "))
	}
	return fmt.Sprintf("%d transactions in %d blocks", len(v.Executed), len(v.Blocks)) +
		list("twice", v.Twice) + list("lost", v.Lost) + list("unexpected", v.Unexpected) + list("out of order", v.Disorder)
}

// Check returns the verdict on the finalized chain.
func (o *Oracle) Check() Verdict { return o.judge(o.final) }

// CheckAt returns the verdict on the chain that ends in head, including blocks that are
// not final. [Oracle.Observe] must have been called for every update so far. The error
// wraps [ErrUnknownBlock].
func (o *Oracle) CheckAt(c *Chain, head jamq.HeaderHash) (Verdict, error) {
	inbox, err := c.Inbox(o.service, head)
	if err != nil {
		return Verdict{}, err
	}
	all := slices.Clone(o.final)
	for _, a := range inbox {
		if a.In.Height > c.finalized.height {
			all = append(all, o.decode(a.Payload))
		}
	}
	return o.judge(all), nil
}

func (o *Oracle) judge(inbox []Execution) Verdict {
	v := Verdict{Executed: make(map[string]int)}
	if o.Guarded {
		inbox = guarded(inbox)
	}
	place := make(map[string]int, len(o.order))
	for i, tx := range o.order {
		place[tx] = i
	}
	highest := -1
	for _, e := range inbox {
		v.Blocks = append(v.Blocks, e.Number)
		for _, tx := range e.Txs {
			v.Executed[tx]++
			if v.Executed[tx] == 2 {
				v.Twice = append(v.Twice, tx)
			}
			i, expected := place[tx]
			switch {
			case v.Executed[tx] > 1:
			case !expected:
				v.Unexpected = append(v.Unexpected, tx)
			case i < highest:
				v.Disorder = append(v.Disorder, tx)
			default:
				highest = i
			}
		}
	}
	for _, tx := range o.order {
		if v.Executed[tx] == 0 {
			v.Lost = append(v.Lost, tx)
		}
	}
	return v
}

// guarded returns the executions that a service applies under Oracle.Guarded.
func guarded(inbox []Execution) []Execution {
	var applied []Execution
	buffer := make(map[uint64][]Execution)
	root, started := "", false
	next := uint64(0)
	for _, e := range inbox {
		if !started {
			root, next, started = e.PreRoot, e.Number, true
		}
		buffer[e.Number] = append(buffer[e.Number], e)
		for {
			i := slices.IndexFunc(buffer[next], func(e Execution) bool { return e.PreRoot == root })
			if i < 0 {
				break
			}
			e := buffer[next][i]
			delete(buffer, next)
			applied = append(applied, e)
			root, next = e.PostRoot, next+1
		}
	}
	return applied
}
