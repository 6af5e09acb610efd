package builder

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
)

// This file is the border between the host, whose blocks have bodies of type B, and the
// engine, which does not read bodies. Only the host's side has a type parameter. Go
// compiles generic code again in each package that uses it, so a generic engine would
// make the builds of a node slow.

// block is a block without the type of its body.
type block = Block[any]

// host is the rollup, together with its codec, as the engine calls it.
type host interface {
	admit(ctx context.Context, op []byte) error
	takeChanges() [][]byte
	replay(ctx context.Context, change []byte) error
	recovered(ctx context.Context, save func() error) error
	propose(ctx context.Context, number uint64) (body any, root common.Hash, err error)
	apply(ctx context.Context, b block) error
	undo(ctx context.Context, b block) error
	root() common.Hash
	payload(ctx context.Context, b block) ([]byte, error)
	final(ctx context.Context, b block) error
	encode(body any) ([]byte, error)
	decode(raw []byte) (any, error)
	// optional returns the rollup itself, so that the engine can look for optional
	// interfaces.
	optional() any
}

// door implements host for a rollup whose bodies have type B.
type door[B any] struct {
	rollup Rollup[B]
	codec  Codec[B]
}

func newDoor[B any](rollup Rollup[B]) door[B] {
	if codec, ok := rollup.(Codec[B]); ok {
		return door[B]{rollup, codec}
	}
	return door[B]{rollup, jsonCodec[B]{}}
}

// typed gives the body of a block the type that the host has chosen.
func typed[B any](b block) Block[B] {
	body, _ := b.Body.(B) // nil in a block without a body
	return Block[B]{
		Number: b.Number, PreRoot: b.PreRoot, Root: b.Root, Body: body, Progress: b.Progress,
		raw: b.raw, serial: b.serial, commitment: b.commitment,
	}
}

func (d door[B]) admit(ctx context.Context, op []byte) error { return d.rollup.Admit(ctx, op) }

func (d door[B]) takeChanges() [][]byte { return d.rollup.TakeChanges() }

func (d door[B]) replay(ctx context.Context, change []byte) error {
	return d.rollup.ReplayChange(ctx, change)
}

func (d door[B]) recovered(ctx context.Context, save func() error) error {
	return d.rollup.Recovered(ctx, save)
}

func (d door[B]) propose(ctx context.Context, number uint64) (any, common.Hash, error) {
	return d.rollup.Propose(ctx, number)
}

func (d door[B]) apply(ctx context.Context, b block) error { return d.rollup.Apply(ctx, typed[B](b)) }

func (d door[B]) undo(ctx context.Context, b block) error { return d.rollup.Undo(ctx, typed[B](b)) }

func (d door[B]) root() common.Hash { return d.rollup.Root() }

func (d door[B]) payload(ctx context.Context, b block) ([]byte, error) {
	return d.rollup.Payload(ctx, typed[B](b))
}

func (d door[B]) final(ctx context.Context, b block) error {
	if f, ok := d.rollup.(Finalizer[B]); ok {
		return f.Final(ctx, typed[B](b))
	}
	return nil
}

func (d door[B]) encode(body any) ([]byte, error) {
	typed, _ := body.(B)
	return d.codec.Encode(typed)
}

func (d door[B]) decode(raw []byte) (any, error) { return d.codec.Decode(raw) }

func (d door[B]) optional() any { return d.rollup }
