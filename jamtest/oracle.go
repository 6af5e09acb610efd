package jamtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jamq/jamq"
)

// Execution is what a rollup's service does with a package: a rollup block with its transactions.
type Execution struct {
	// Number is the rollup block, PreRoot and PostRoot are its states; the roots matter only to a service that is guarded.
	Number            uint64
	PreRoot, PostRoot string
	// Txs name its transactions.
	Txs []string
}

// Oracle says what really became of a rollup's transactions. It reads the simulated chain and nothing else: no queue can talk it
// into anything.
type Oracle struct {
	service jamq.ServiceID
	decode  func(payload []byte) Execution
	// Guarded lets the service defend itself: it applies a rollup block only if number and pre-state continue what it has, ignores
	// older ones and buffers newer ones. A second version of a block is then a no-op. Off by default: a queue must not need it.
	Guarded bool

	expected map[string]bool
	order    []string
	final    []Execution
}

// NewOracle returns an oracle for one service; decode turns a package's payload into what its service would execute.
func NewOracle(service jamq.ServiceID, decode func(payload []byte) Execution) *Oracle {
	return &Oracle{service: service, decode: decode, expected: make(map[string]bool)}
}

// Expect names transactions that must be executed once, in this order among each other.
func (o *Oracle) Expect(txs ...string) {
	for _, tx := range txs {
		if !o.expected[tx] {
			o.expected[tx] = true
			o.order = append(o.order, tx)
		}
	}
}

// Observe takes what became final. It must see every update of the chain, once, in order.
func (o *Oracle) Observe(u Update) {
	for _, a := range u.Final {
		if a.Service == o.service {
			o.final = append(o.final, o.decode(a.Payload))
		}
	}
}

// Verdict is what an oracle found.
type Verdict struct {
	// Executed is how often each transaction was executed.
	Executed map[string]int
	// Twice were executed more than once, Lost were expected and not executed, Unexpected the other way round; each in order of
	// execution or of expectation.
	Twice, Lost, Unexpected []string
	// Disorder are expected transactions that were executed before one that was expected before them.
	Disorder []string
	// Blocks are the numbers of the rollup blocks as executed.
	Blocks []uint64
}

// OK reports whether everything was executed once and in order.
func (v *Verdict) OK() bool {
	return len(v.Twice)+len(v.Lost)+len(v.Unexpected)+len(v.Disorder) == 0
}

// String returns one line for people.
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

// Check judges the finalized chain.
func (o *Oracle) Check() Verdict { return o.judge(o.final) }

// CheckAt judges the chain that ends in head: what is final and what is not yet. The chain must still hold its blocks since the last
// update. The error wraps [ErrUnknownBlock].
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

// guarded returns what a service applies that defends itself.
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
