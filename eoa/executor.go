package eoa

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Executor sends the requests of one account. All methods are safe for
// concurrent use. Any number of executors may run for the same account, on any
// number of machines that share a store. The one that holds the account's lease
// works; the others wait.
type Executor struct {
	Client
	cfg     Config
	rules   account.Rules
	chain   timeouts
	signer  Signer
	owner   string
	signals *signals

	mu            sync.Mutex    // held during a step
	lease         Lease         // zero Epoch: none
	view          *account.View // nil: must be loaded
	staged        *Batch        // applied but not written; nil: none
	commitUnknown bool          // failed commit may still happen
	inbox         inbox
	watch         watch
	history       history
	gas           *gasCall // under way; nil: none
	signErr       error    // error of the last signature
	stopLogged    bool     // error of the present stop logged
	report        Report
	problems      []Problem // as of the last step
}

// New returns an executor. It does nothing until the host calls [Executor.Run],
// or [Executor.Step] repeatedly. The error wraps ErrInvalidConfig.
func New(cfg Config, a Account, store Store, chain Chain, signer Signer) (*Executor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if store == nil || chain == nil || signer == nil || a.ChainID == 0 {
		return nil, fmt.Errorf("%w: want a store, a chain, a signer and a chain id above 0", ErrInvalidConfig)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	if cfg.Witness == nil {
		cfg.Witness = NewWitness()
	}
	limited := timeouts{chain, signer, cfg.Timeout, cfg.Logger}
	e := &Executor{cfg: cfg, rules: cfg.rules(), chain: limited, signer: limited, owner: hex.EncodeToString(id[:]), signals: newSignals()}
	e.Client = Client{a, store, cfg.Now, cfg.Confirmations, e.Wake, e.signals.progress}
	return e, nil
}

// Wake tells the executor that there may be new work, for example requests that
// another process submitted to the store.
func (e *Executor) Wake() { e.signals.wake() }

// NewHead tells the executor that the chain has a new block.
func (e *Executor) NewHead() {
	if e.signals.noteHead() {
		e.Wake()
	}
}
