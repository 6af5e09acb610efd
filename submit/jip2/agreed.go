package jip2

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// mostRounds is how often agreed sends its two requests at most.
const mostRounds = 3

// agreed asks the node until two answers name the same block, and returns that
// block.
func agreed(ctx context.Context, note func(error), moves bool, ask func(context.Context) (BlockDescriptor, error)) (BlockDescriptor, error) {
	// A single answer is not enough. JIP-2 serves no headers that would verify it,
	// and a wrong answer would be delivered as a block.
	votes := make(map[BlockDescriptor]int)
	var refused error // the node's last Error
	// Answers of honest nodes differ if a head moves between two requests, or if a
	// gateway passes the requests to several nodes. Then ask again.
	for range mostRounds {
		var asking sync.WaitGroup
		var answers [2]BlockDescriptor
		var failures [2]error
		for i := range answers {
			asking.Go(func() { answers[i], failures[i] = ask(ctx) })
		}
		asking.Wait()
		for i, err := range failures {
			if e := new(Error); err != nil && !errors.As(err, &e) {
				return BlockDescriptor{}, err
			} else if err != nil {
				refused = err
			} else {
				votes[answers[i]]++
			}
		}
		// Both first answers are errors, so return the node's Error.
		if len(votes) == 0 {
			return BlockDescriptor{}, refused
		}
		// If two blocks have two answers each, the newer block counts.
		if named := newest(votes, 2); len(named) > 0 {
			for _, b := range newest(votes, 1) {
				// Honest answers about a head differ if the head moves in between (moves). They
				// contradict each other only if the hash or the slot is the same.
				if a := named[0]; a != b && (!moves || a.HeaderHash == b.HeaderHash || a.Slot == b.Slot) {
					note(contradiction(a, b))
				}
			}
			return named[0], nil
		}
	}
	named := newest(votes, 1)
	if first := named[0]; len(named) == 1 {
		// The returned error must not wrap the error of the node, because the caller would read
		// it as "the block has no parent".
		return first, fmt.Errorf("%w: only one of %d answers names block %s of slot %d, and the others are errors: %v", submit.ErrContradiction,
			2*mostRounds, jamq.HeaderHash(first.HeaderHash), first.Slot, refused)
	}
	return named[0], &disagreement{named}
}

// disagreement is the error if each answer of the node names another block.
type disagreement struct{ named []BlockDescriptor } // at least two, the newest first

func (e *disagreement) Error() string { return contradiction(e.named[0], e.named[1]).Error() }

func (e *disagreement) Unwrap() error { return submit.ErrContradiction }

// contradiction returns the error of two different answers to one question.
func contradiction(a, b BlockDescriptor) error {
	return fmt.Errorf("%w: asked several times, it named block %s of slot %d and block %s of slot %d", submit.ErrContradiction,
		jamq.HeaderHash(a.HeaderHash), a.Slot, jamq.HeaderHash(b.HeaderHash), b.Slot)
}

// newest returns the blocks with at least the given votes, newest first.
func newest(votes map[BlockDescriptor]int, least int) (named []BlockDescriptor) {
	for b, n := range votes {
		if n >= least {
			named = append(named, b)
		}
	}
	slices.SortFunc(named, func(a, b BlockDescriptor) int {
		return cmp.Or(cmp.Compare(b.Slot, a.Slot), bytes.Compare(a.HeaderHash[:], b.HeaderHash[:]))
	})
	return named
}
