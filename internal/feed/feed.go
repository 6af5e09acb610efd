// Package feed has the part that the feeds of submit/jip2 and submit/jamnps
// share: the loop that catches up with a node again and again, its health, and
// the two messages to the sink that concern blocks which were delivered before.
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

// ErrSink marks an error of the sink, after which a feed cannot continue.
var ErrSink = errors.New("feed: block not taken")

// Loop is one run of a feed's Follow at a time, and its health. The zero value
// is ready. Its methods are safe for concurrent use.
type Loop struct {
	mu     sync.Mutex
	health submit.FeedHealth
}

// Health returns the health without the blocks.
func (l *Loop) Health() submit.FeedHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// Begin returns false if the loop runs already. Otherwise the caller must call
// End.
func (l *Loop) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.Following {
		return false
	}
	l.health.Following = true
	return true
}

// End lets the next call of Begin succeed.
func (l *Loop) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.Following = false
}

// NoteBest records that the best block has changed.
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

// NoteContradiction records that a feed has ignored what a node said, if err wraps
// submit.ErrContradiction.
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

// Run calls catchUp until it returns an error that wraps one of fatal, or wait
// returns false. It retries after other errors and logs them, at most one in each
// LogEvery. At least a part of a slot passes between two calls, so that a node whose
// head changes all the time does not use up the processor. The argument of wait is
// whether catchUp has failed. Run returns the fatal error, or the error of ctx, or
// ended.
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

// attemptsPerSlot is the maximum number of calls of catchUp in a slot.
const attemptsPerSlot = 64

// note records the result of an attempt to catch up.
func (l *Loop) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the attempt was given up
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

// LogEvery is the shortest time between two log messages about the same thing.
const LogEvery = time.Minute

// Seldom limits log messages about a thing that a node can cause as often as it
// likes. The zero value is ready. It is safe for concurrent use.
type Seldom struct {
	mu   sync.Mutex
	last time.Time
}

// Do calls log, unless it has called one less than LogEvery ago.
func (s *Seldom) Do(log func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.last.IsZero() || now.Sub(s.last) >= LogEvery {
		s.last = now
		log()
	}
}

// Chain is the delivered blocks of a feed.
type Chain[T any] struct {
	// Tree has the blocks. Changes hold Mu, the feed's lock.
	Tree *headers.Tree[T]
	Mu   *sync.Mutex
	// Loop is the feed's loop.
	Loop *Loop
}

// MakeBest makes a block that was delivered before the best one. The sink knows
// the block, so only the head changes. accumulated is Block.AccumulatedKnown of
// the feed's blocks.
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

// Finalize passes the finality of a delivered block to the sink, unless it is
// not newer than the finalized one. It returns an error that wraps lost if the
// block does not descend from the finalized one.
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
