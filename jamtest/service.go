package jamtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/service"
)

// state is the simulated part of the state after a block, and the output log. It exists
// only with Config.Genesis. It shares unchanged parts with the parent's state.
type state struct {
	trie    *statetrie.Trie
	outputs []proof.Output
	log     *proof.Log
	leaves  *leaf
	set     uint64 // number of the validator set
}

// leaf is the newest leaf of an output log. It points to the older leaves, so that
// blocks can share them.
type leaf struct {
	before *leaf
	root   common.Hash
	index  uint64
}

// all returns the leaves up to this one, oldest first.
func (l *leaf) all() []common.Hash {
	leaves := make([]common.Hash, l.index+1)
	for ; l != nil; l = l.before {
		leaves[l.index] = l.root
	}
	return leaves
}

// settle sets the roots after a sealed block: real ones if the chain has services, and
// placeholders otherwise.
func (c *Chain) settle(b *block) {
	if c.cfg.Genesis == nil {
		b.stateRoot, b.beefyRoot = standIns(b.Hash)
		return
	}
	s := &state{}
	index := uint64(0)
	var log []*common.Hash
	if b.parent != nil {
		before := b.parent.state
		s.trie, s.leaves, s.set, log, index = before.trie, before.leaves, before.set, before.log.Peaks(), before.leaves.index+1
	} else {
		for key, value := range c.cfg.Genesis { // any order makes the same trie
			s.trie = s.trie.Set(key, value)
		}
	}
	s.log = proof.NewLog(log)
	c.callServices(s, b)
	c.rotate(s, b)
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterSlot), binary.LittleEndian.AppendUint32(nil, uint32(b.Slot)))
	s.trie = s.trie.Set(statetrie.ChapterKey(statetrie.ChapterOutputs), proof.EncodeOutputs(s.outputs))
	root := proof.OutputRoot(s.outputs)
	s.log.Append(root)
	s.leaves = &leaf{before: s.leaves, root: root, index: index}
	b.state, b.stateRoot, b.beefyRoot = s, s.trie.Root(), s.log.SuperPeak()
}

// callServices lets the services accumulate the packages of a block. Each service gets
// all its packages in one call. The calls are in ascending order of the services'
// numbers.
func (c *Chain) callServices(s *state, b *block) {
	calls := make(map[jamq.ServiceID][]service.Operand)
	for _, h := range b.Accumulated {
		p := c.packages[h]
		output, err := service.Refine(p.Payload, p.Hash)
		if err != nil {
			output = nil // as if refine had panicked
		}
		calls[p.Service] = append(calls[p.Service], service.Operand{Package: p.Hash, Authorizer: p.Authorizer, Output: output})
	}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		if account, exists := s.trie.Get(statetrie.ServiceKey(id)); exists {
			s.call(id, account, b.Slot, calls[id])
		}
	}
}

// call lets a service accumulate. If the service has no storage, this counts as a
// panic, which changes only the slot in the service's account.
func (s *state) call(id jamq.ServiceID, account []byte, slot jamq.Slot, operands []service.Operand) {
	get := func(key string) []byte { return s.value(id, []byte(key)) }
	changes, yield, err := service.Accumulate(get, slot, operands)
	if err != nil {
		changes = nil
	}
	items, octets := 0, 0
	for key, value := range changes { // any order makes the same trie and sums
		const perItem = 34 // GP 9.8
		if before := get(key); before != nil {
			items, octets = items-1, octets-perItem-len(key)-len(before)
		}
		at := statetrie.StorageKey(id, []byte(key))
		if value == nil {
			s.trie = s.trie.Delete(at)
			continue
		}
		items, octets = items+1, octets+perItem+len(key)+len(value)
		s.trie = s.trie.Set(at, value)
	}
	s.trie = s.trie.Set(statetrie.ServiceKey(id), moved(account, items, octets, slot))
	if yield != nil {
		s.outputs = append(s.outputs, proof.Output{Service: id, Yield: *yield})
	}
}

// moved returns an encoded account (Gray Paper D.2) after an accumulation in the given
// slot, which has changed the size of the storage by items and octets.
func moved(account []byte, items, octets int, slot jamq.Slot) []byte {
	out, le := slices.Clone(account), binary.LittleEndian
	le.PutUint64(out[57:], le.Uint64(out[57:])+uint64(octets))
	le.PutUint32(out[73:], le.Uint32(out[73:])+uint32(items))
	le.PutUint32(out[81:], uint32(slot))
	return out
}

// value returns a value from the storage of a service, or nil.
func (s *state) value(id jamq.ServiceID, key []byte) []byte {
	value, _ := s.trie.Get(statetrie.StorageKey(id, key))
	return value
}

// Value returns the value of a key in the storage of a service after a block of any
// branch, or nil if the key has no value. Package service defines the keys. The error
// wraps [ErrUnknownBlock] or [ErrNoServices].
func (c *Chain) Value(id jamq.ServiceID, head jamq.HeaderHash, key []byte) ([]byte, error) {
	b, err := c.withState(head)
	if err != nil {
		return nil, err
	}
	return b.state.value(id, key), nil
}

// Account returns the encoded account of a service (Gray Paper D.2) after a block of
// any branch, or nil if there is no such service. Its balance is always that in the
// genesis. The error wraps [ErrUnknownBlock] or [ErrNoServices].
func (c *Chain) Account(id jamq.ServiceID, head jamq.HeaderHash) ([]byte, error) {
	b, err := c.withState(head)
	if err != nil {
		return nil, err
	}
	account, _ := b.state.trie.Get(statetrie.ServiceKey(id))
	return account, nil
}

// State returns the state after a block of any branch. The error wraps
// [ErrUnknownBlock] or [ErrNoServices].
func (c *Chain) State(head jamq.HeaderHash) (*statetrie.Trie, error) {
	b, err := c.withState(head)
	if err != nil {
		return nil, err
	}
	return b.state.trie, nil
}

// withState returns a block that has a simulated state. The error wraps ErrNoServices
// if Config.Genesis is nil, or ErrUnknownBlock.
func (c *Chain) withState(hash jamq.HeaderHash) (*block, error) {
	if c.cfg.Genesis == nil {
		return nil, fmt.Errorf("%w: Config.Genesis is nil", ErrNoServices)
	}
	b, ok := c.blocks[hash]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownBlock, hash)
	}
	return b, nil
}
