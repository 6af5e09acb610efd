// Package feed contains the code that the feeds of submit/jip2 and submit/jamnps share.
// A feed follows a JAM chain and delivers its blocks to a sink, which is usually a
// builder. This package contains:
//
//   - [Loop], which calls a feed's catch-up function again and again and records
//     the feed's health
//   - [Chain], which sends the sink messages about blocks that the sink already
//     has: a new best block, and finality
//   - [Contradiction], which decides when a feed gives up a node that contradicts
//     the delivered blocks
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
)

// ErrSink is wrapped by an error of the sink. Follow ends with such an error, because
// the feed cannot leave out the block that the sink has refused.
var ErrSink = errors.New("feed: block not taken")

// Loop runs a feed's Follow, only once at a time, and records the feed's health. The
// zero value is ready to use. Its methods are safe for concurrent use.
type Loop struct {
	mu     sync.Mutex
	health submit.FeedHealth
}

// Health returns the part of the health that the loop records. The feed itself adds the
// blocks and the nodes.
func (l *Loop) Health() submit.FeedHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// Begin claims the loop for one run, which the caller must end with End. It returns
// false if the loop is already running.
func (l *Loop) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.Following {
		return false
	}
	l.health.Following = true
	return true
}

// End ends the run, so that the next call of Begin succeeds.
func (l *Loop) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.Following = false
}

// NoteBest records the time of a change of the best block.
func (l *Loop) NoteBest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.LastBest = time.Now()
}

// NoteAnswer records how long a request to a node took.
func (l *Loop) NoteAnswer(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.AnswerTime = took
}

// NoteContradiction counts err if it wraps submit.ErrContradiction. A feed calls it
// when it ignores a message from a node because of a contradiction.
func (l *Loop) NoteContradiction(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteContradiction(err)
}

func (l *Loop) noteContradiction(err error) {
	if errors.Is(err, submit.ErrContradiction) {
		l.health.Contradictions++
		l.health.LastContradiction = err
	}
}

// Run calls catchUp again and again until catchUp returns an error that wraps one of
// fatal, or wait returns false. After any other error, Run tries again, and logs at
// most one such error in each LogEvery. wait receives whether catchUp has failed. At
// least a 64th of a slot passes between two calls, so that a node whose head changes
// all the time does not use up the processor.
//
// If ctx has ended, Run returns the error of ctx. Otherwise it returns the fatal error
// or, if wait has returned false, the error ended.
func (l *Loop) Run(ctx context.Context, log *slog.Logger, slot time.Duration, catchUp func() error, wait func(failed bool) bool, ended error, fatal ...error) error {
	var seldom Seldom
	logged := false
	for {
		err := catchUp()
		l.note(ctx, err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isAny(err, fatal):
			return err
		case err != nil:
			seldom.Do(func() {
				log.Warn("cannot follow the chain, retrying", "err", err)
				logged = true
			})
		case logged:
			log.Info("following the chain again")
			logged = false
		}
		if !backoff.Pause(ctx, slot/attemptsPerSlot) || !wait(err != nil) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return ended
		}
	}
}

// attemptsPerSlot is the maximum number of times that Run calls catchUp in a
// slot.
const attemptsPerSlot = 64

// note records the result of an attempt to catch up in the health.
func (l *Loop) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the attempt was abandoned
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteContradiction(err)
	h := &l.health
	if h.LastError = err; err == nil {
		h.Failures, h.FailingSince, h.LastSuccess = 0, time.Time{}, time.Now()
		return
	}
	if h.Failures++; h.Failures == 1 {
		h.FailingSince = time.Now()
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// LogEvery is the shortest time between two log messages about the same
// problem.
const LogEvery = time.Minute

// Seldom limits log messages about problems that a faulty node can cause at any rate,
// so that the node cannot fill the log. The zero value is ready to use. Seldom is safe
// for concurrent use.
type Seldom struct {
	mu   sync.Mutex
	last time.Time
}

// Do calls log, unless it has already called a function within the last LogEvery.
func (s *Seldom) Do(log func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() || now.Sub(s.last) >= LogEvery {
		s.last = now
		log()
	}
}

// Chain gives this package access to the blocks that a feed has delivered.
type Chain[T any] struct {
	// Tree contains the delivered blocks. Mu is the feed's lock, which must be held while
	// Tree changes.
	Tree *headers.Tree[T]
	Mu   *sync.Mutex
	// Loop is the feed's loop, which records changes of the best block.
	Loop *Loop
}

// MakeBest makes a block that was delivered earlier the best block, and informs the
// sink. The sink already has the block, so only its head changes. accumulated is the
// value of Block.AccumulatedKnown in the feed's blocks.
func (c Chain[T]) MakeBest(ctx context.Context, to submit.ChainSink, n *headers.Block[T], accumulated bool) error {
	block := jamq.Block{Hash: n.Hash, Slot: n.Slot, AccumulatedKnown: accumulated}
	if n.Parent != nil {
		block.Parent = n.Parent.Hash
	}
	if err := to.Import(ctx, block, n.Hash); err != nil {
		return fmt.Errorf("%w: best block %s: %w", ErrSink, n.Hash, err)
	}
	c.Mu.Lock()
	c.Tree.SetBest(n)
	c.Mu.Unlock()
	c.Loop.NoteBest()
	return nil
}

// Finalize informs the sink that a delivered block is final, and returns true. If the
// block is nil, or not newer than the finalized block, Finalize does nothing and
// returns false. If the block does not descend from the finalized block, Finalize
// returns an error that wraps lost.
func (c Chain[T]) Finalize(ctx context.Context, to submit.ChainSink, n *headers.Block[T], lost error) (moved bool, err error) {
	final := c.Tree.Finalized()
	switch {
	case n == nil || n.Height <= final.Height:
		return false, nil
	case !n.Descends(final):
		return false, fmt.Errorf("%w: finalized block %s does not descend from the finalized %s", lost, n.Hash, final.Hash)
	}
	if err := to.Finalize(ctx, n.Hash); err != nil {
		return false, fmt.Errorf("%w: finalized block %s: %w", ErrSink, n.Hash, err)
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Tree.Finalize(n)
	return true, nil
}
