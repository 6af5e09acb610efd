package builder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// This file stops a builder whose JAM blocks cannot be trusted. When a package seems
// dead, the builder replaces it by another package with the same operations. If the
// blocks that the host delivers lack a field, packages seem dead that JAM does
// accumulate, and the operations are executed again and again.
//
// Such a mistake has two symptoms: guarantors accept packages but the blocks never show
// any of them, or the blocks show a package after its death.

// ErrEvidence is wrapped by the error of Run if the JAM blocks contradict the fate
// of the rollup's packages. The text names the field of jamq.Block that the host
// probably does not fill in. Operations may have been executed twice already, so
// the host should compare the state of the service with the log before the builder
// runs again.
var ErrEvidence = errors.New("builder: the JAM blocks contradict themselves")

// ErrServiceInUse is wrapped by the error of Open if the service has accepted more
// blocks than the log has. The possible reasons are that the log was lost, that it
// comes from an old backup, or that it is a second log for the same service. A
// builder with this log would execute operations again.
//
// The operator should restore the newest log. If there is none, the operator begins
// with an empty log, with the service's final state as the genesis, and with the
// number after its last block as Config.Queue.FirstNumber, as after a drain.
var ErrServiceInUse = errors.New("builder: the service has blocks that the log lacks")

// Receiver is an optional part of a [Network]. With it, Open detects a log that was
// lost or is old, and a service that another builder uses.
type Receiver interface {
	// Received returns the number of packages that the rollup's service has accepted up
	// to the newest block. A network that knows only that there are some returns 1.
	Received(ctx context.Context) (uint64, error)
}

// checkReceived returns an error if the service has accepted more blocks than the log
// has.
func (e *engine) checkReceived(ctx context.Context, newest uint64, must bool) error {
	network, ok := e.network.(Receiver)
	if !ok {
		return nil
	}
	if !must {
		// The node may be down, and the builder can also run without the answer. It therefore
		// waits for one slot only.
		limited, cancel := context.WithTimeout(ctx, e.cfg.Queue.Spec.SlotDuration)
		defer cancel()
		ctx = limited
	}
	var have uint64
	err := guard(func() (err error) { have, err = network.Received(ctx); return err })
	switch {
	case err != nil && must:
		return fmt.Errorf("builder: Network.Received: %w", err)
	case err != nil:
		e.log.Warn("builder: the service cannot be asked how many blocks it has accepted", "err", err)
	// The service has accepted more blocks than the log has: the log was lost, is old, or is a
	// second log for the same service.
	case have > newest:
		return fmt.Errorf("%w: it has accepted at least %d blocks, want at most %d, the number of the newest block of the log; restore the newest log, use a different service, or begin with the service's final state as genesis and FirstNumber %d", ErrServiceInUse, have, newest, have+1)
	}
	return nil
}

// Specified is an optional part of a [Network] that knows the constants of its
// chain. With it, Open refuses a configuration for a different chain. Otherwise
// packages would be sent to cores that do not exist, or at a wrong time.
type Specified interface {
	// Spec returns the constants of the network's chain.
	Spec() jamq.ChainSpec
}

// checkSpec returns an error if the configuration is for another chain than the
// network's.
func (e *engine) checkSpec() error {
	network, ok := e.network.(Specified)
	if !ok {
		return nil
	}
	have, want := e.cfg.Queue.Spec, network.Spec()
	name := have.Name
	// Only the names of the two chains may differ.
	if have.Name = want.Name; have == want {
		return nil
	}
	have.Name = name
	return fmt.Errorf("%w: Config.Queue.Spec is for another chain than that of the network: have %+v, want %+v; begin with DefaultConfig(network.Spec())", ErrInvalidConfig, have, want)
}

// awaitDoubt returns an error when the JAM blocks cannot be trusted. It returns nil
// when the builder stops.
func (e *engine) awaitDoubt(ctx context.Context) error {
	for {
		var doubt error
		select {
		case doubt = <-e.doubted:
		case <-ctx.Done():
			return nil
		}
		network, ok := e.network.(Receiver)
		if !ok {
			return doubt
		}
		// According to the blocks, all packages are lost. Either they really were, or the host
		// delivers incomplete blocks. The service knows: if it has accepted no package, they
		// were lost.
		var have uint64
		err := e.calls.make(ctx, "Network.Received", func() (err error) { have, err = network.Received(ctx); return err })
		switch {
		case err != nil:
			e.log.Warn("builder: all packages seem lost, and the service cannot be asked", "err", err)
		case have >= e.chain.first:
			if e.staysBlind(ctx) {
				return doubt
			}
		default:
			e.log.Warn("builder: all packages are lost: JAM refuses them, or no guarantor receives them", "err", doubt)
		}
	}
}

// staysBlind waits for eight slots, so that late blocks can arrive. It returns true if the
// blocks then still show no package as accumulated, although the service has accepted
// some, so that they must lack a field.
func (e *engine) staysBlind(ctx context.Context) bool {
	const slots = 8
	timer := time.NewTimer(slots * e.cfg.Queue.Spec.SlotDuration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil && !e.trust.earned.Load()
}

// errAllLost is wrapped by an ErrEvidence that may be wrong, because its only evidence
// is that all packages seem lost. If the service has accepted no package, they are
// really lost and the blocks are right.
var errAllLost = errors.New("all packages seem lost")

// trust detects a host that delivers incomplete JAM blocks. It counts how the rollup's
// packages end. If a package is accumulated after its death, or if all packages seem lost,
// the blocks probably lack a field.
type trust struct {
	earned atomic.Bool              // a package was accumulated
	died   map[uint64]anchor.Reason // of the last package that was sent, by block
	lost   int                      // packages of failed blocks since Open
}

// enoughLost is the number of lost packages after which a builder stops if none of its
// packages was ever accumulated, unless the service reports that it has accepted none.
// With the default configuration, two failed blocks lose this many packages. If a
// network is no Receiver and loses half of all packages at random, one builder in 4096
// stops without a reason.
const enoughLost = 12

// follow looks for such evidence in the effects of a step of the queue. It returns an
// error if it finds some.
func (t *trust) follow(effects []bundlequeue.Effect) error {
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Changed:
			if e.To == bundlequeue.Accumulated || e.To == bundlequeue.Finalized {
				t.earned.Store(true)
			}
		case bundlequeue.Died:
			if !e.Unsent {
				t.died[e.Number] = e.Reason
			}
		case bundlequeue.Resurrected:
			return fmt.Errorf("%w: package %s was accumulated after blocks had shown that it is dead; a block before lacked a field, probably Reported or Available. Fill Accumulated and set AccumulatedKnown first", ErrEvidence, e.Package)
		case bundlequeue.Failed:
			if e.Number == e.Cause {
				t.lost += e.Lost
			}
			if e.Lost > 0 && !t.earned.Load() && t.lost >= enoughLost {
				return t.refuse(e.Cause)
			}
			delete(t.died, e.Number)
		}
	}
	return nil
}

// refuse returns the error for a builder whose packages are all lost.
func (t *trust) refuse(number uint64) error {
	field, seen, hint := "Reported", "reported", ""
	// The reason shows which field of jamq.Block the host probably does not fill in.
	switch t.died[number] {
	case anchor.Unavailable:
		field, seen = "Available", "available"
	case anchor.NeverReady:
		field, seen, hint = "Accumulated", "accumulated", " (behind JIP-2: the service does not store what it accepts)"
	}
	return fmt.Errorf("%w: %w: guarantors accepted %d packages, and no block has shown that one was %s; jamq.Block.%s is probably not filled%s, or JAM refuses the packages because of their authorizer or core", ErrEvidence, errAllLost, t.lost, seen, field, hint)
}
