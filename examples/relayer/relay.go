package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
	"github.com/jamq/jamq/examples/relayer/ops"
	"github.com/jamq/jamq/pebble/pebbleeoa"
)

// relay sends n transfers. Their keys are numbered, so that a restart finds the
// accepted ones.
type relay struct {
	n        int
	dir      string
	finality uint64
	metrics  string // address of the endpoints for operators; empty: none
	key      *ecdsa.PrivateKey
	out      io.Writer
	log      *slog.Logger // nil: none

	ended  atomic.Int64 // finished transfers
	states map[eoa.State]int
	bumps  int
}

// run returns when all transfers have ended, or when ctx ends.
func (r *relay) run(ctx context.Context, client *rpc.Client) error {
	var id hexutil.Uint64
	if err := client.CallContext(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	account := eoa.Account{ChainID: uint64(id), Address: crypto.PubkeyToAddress(r.key.PublicKey)}
	store, closeStore, err := r.store()
	if err != nil {
		return err
	}
	// The database is open, so no other process uses it: a lease in it is from
	// an earlier run.
	if err := store.Break(ctx, account); err != nil {
		return errors.Join(err, closeStore())
	}
	chain, err := ethchain.New(client, ethchain.Options{FinalityDepth: r.finality})
	if err != nil {
		return errors.Join(err, closeStore())
	}
	cfg, metrics := eoa.DefaultFleetConfig(), ops.New()
	e := &cfg.Executor
	e.Poll, e.Confirmations, e.MaxInFlight, e.MaxUnsure, e.Batch = 50*time.Millisecond, 1, 4000, 4000, 500
	e.Observe, e.Logger = metrics.Observe, r.log
	fleet, err := eoa.NewFleet(cfg, store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return chain, eoa.NewKeySigner(account.ChainID, r.key), nil
	})
	if err != nil {
		return errors.Join(err, closeStore())
	}
	metrics.Watch(fleet)
	closeServer, err := r.serve(ops.Handler(fleet, metrics, time.Minute))
	if err != nil {
		return errors.Join(err, closeStore())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = fleet.Run(running) // ends only with the context
	}()
	began, user := time.Now(), fleet.Client(account)
	if err = r.submit(ctx, user); err == nil {
		err = r.watch(ctx, user)
	}
	stop()
	<-ended
	err = errors.Join(err, closeServer())
	if err == nil {
		r.table(account, time.Since(began))
	}
	return errors.Join(err, closeStore())
}

// serve starts the server for operators, and returns the function that closes it.
func (r *relay) serve(h http.Handler) (closeServer func() error, err error) {
	if r.metrics == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", r.metrics)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", err)
	}
	_, _ = fmt.Fprintf(r.out, "metrics at http://%v/metrics\n", listener.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return server.Close, nil
}

func (r *relay) store() (eoa.Store, func() error, error) {
	if r.dir == "" {
		return memstore.New(), func() error { return nil }, nil
	}
	s, err := pebbleeoa.Open(r.dir, pebbleeoa.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("-datadir, which only one process may use: %w", err)
	}
	return s, s.Close, nil
}

// submit submits all transfers. Those of an earlier run are already accepted.
func (r *relay) submit(ctx context.Context, c *eoa.Client) error {
	const atOnce = 500
	for from := 0; from < r.n; from += atOnce {
		var requests []eoa.Request
		for i := from; i < min(from+atOnce, r.n); i++ {
			to := common.BytesToAddress(crypto.Keccak256(fmt.Appendf(nil, "receiver %d", i)))
			requests = append(requests, eoa.Request{Key: fmt.Sprint("transfer ", i), To: &to, Value: uint256.NewInt(1), Gas: 21_000})
		}
		if _, err := c.Submit(ctx, requests...); err != nil {
			return err
		}
	}
	return nil
}

// watch draws a progress bar until all transfers have ended. They mostly end in
// order of their nonces, so it waits for each in turn.
func (r *relay) watch(ctx context.Context, c *eoa.Client) error {
	r.states = map[eoa.State]int{}
	for i := range r.n {
		record, err := c.Wait(ctx, fmt.Sprint("transfer ", i), eoa.Final)
		if err != nil {
			return err
		}
		if !record.State.Terminal() {
			return fmt.Errorf("transfer %d is %v", i, record.State)
		}
		r.states[record.State]++
		r.bumps += record.Bumps
		if over := r.ended.Add(1); over%max(1, int64(r.n/50)) == 0 || int(over) == r.n {
			const width = 40
			full := width * int(over) / r.n
			_, _ = fmt.Fprintf(r.out, "\r[%s%s] %d of %d", strings.Repeat("=", full), strings.Repeat(" ", width-full), over, r.n)
		}
	}
	_, _ = fmt.Fprintln(r.out)
	return nil
}

// table prints the number of transfers per state.
func (r *relay) table(a eoa.Account, took time.Duration) {
	_, _ = fmt.Fprintf(r.out, "account %v\n", a)
	for _, s := range []eoa.State{eoa.Final, eoa.Failed, eoa.Superseded, eoa.Cancelled} {
		_, _ = fmt.Fprintf(r.out, "  %-10v %6d\n", s, r.states[s])
	}
	_, _ = fmt.Fprintf(r.out, "  bumps      %6d\n  took %v, %.0f transfers per second from submit to final\n", r.bumps, took.Round(time.Millisecond),
		float64(r.n)/took.Seconds())
}
