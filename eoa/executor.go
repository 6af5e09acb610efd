package eoa

import (
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Executor sends the requests of one account. Any number of executors may run for
// the same account, on any number of machines that share a store. Only the executor
// that holds the account's lease works, and the others wait. An Executor is also a
// [Client] of its account. All methods are safe for concurrent use.
type Executor struct {
	Client
	cfg     Config
	rules   account.Rules
	chain   timeouts
	signer  Signer
	owner   string
	signals *signals

	mu            sync.Mutex    // held during a step
	lease         Lease         // zero Epoch: no lease
	view          *account.View // nil: must be loaded from the store
	staged        *Batch        // applied to view but not written; nil: none
	commitUnknown bool          // the last commit failed but may still be applied
	inbox         inbox
	watch         watch
	history       history
	gas           *gasCall // call that is running; nil: none
	signErr       error    // error of the last signature; nil: it succeeded
	stopLogged    bool     // the error of the present stop was logged
	report        Report
	problems      []Problem // as of the last step
}

// New returns an executor for the account a. It does nothing until the host calls
// [Executor.Run], or calls [Executor.Step] repeatedly. The error wraps
// ErrInvalidConfig.
func New(cfg Config, a Account, store Store, chain Chain, signer Signer) (*Executor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || chain == nil || signer == nil || a.ChainID == 0 {
		return nil, fmt.Errorf("%w: want a store, a chain, a signer and a chain id above 0", ErrInvalidConfig)
	}
	cfg = cfg.withDefaults()
	limited := timeouts{chain, signer, cfg.Timeout, cfg.Logger}
	e := &Executor{cfg: cfg, rules: cfg.Rules, chain: limited, signer: limited, owner: rand.Text(), signals: newSignals()}
	e.Client = Client{a, store, cfg.Now, cfg.Confirmations, e.Wake, e.signals.progress}
	return e, nil
}

// Wake tells the executor that the store may have new work, for example requests that another
// process has submitted.
func (e *Executor) Wake() { e.signals.wake() }

// NewHead tells the executor that the chain has a new block. If the executor holds
// the account's lease, it reads the chain at once instead of waiting for
// Config.Poll.
func (e *Executor) NewHead() {
	if e.signals.requestLook() {
		e.Wake()
	}
}
