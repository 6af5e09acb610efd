package evm

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

// errUnsupported is returned by methods that execution does not use.
var errUnsupported = errors.New("evm: not supported on a view")

// database is the state database for go-ethereum's StateDB. It passes reads to a
// view and collects writes.
type database struct {
	*adapter
	// nodes is an empty trie database, because StateDB asks for one.
	nodes *triedb.Database
}

func newAdapter(view *statedb.View) *adapter {
	return &adapter{
		view:     view,
		accounts: make(map[common.Address]statedb.Account),
		storage:  make(map[common.Address]map[common.Hash]common.Hash),
		code:     make(map[common.Address][]byte),
		asked:    make(map[slotOf]bool),
		gone:     make(map[common.Address]bool),
	}
}

// open returns a new StateDB on top of the adapter.
func (a *adapter) open() (*state.StateDB, error) {
	db := &database{adapter: a, nodes: triedb.NewDatabase(rawdb.NewMemoryDatabase(), nil)}
	// StateDB reads from the view through the adapter. Its writes reach the adapter only when
	// IntermediateRoot is called.
	sdb, err := state.New(types.EmptyRootHash, db)
	if err != nil {
		return nil, fmt.Errorf("evm: open state: %w", err)
	}
	return sdb, nil
}

// Type returns TypeMPT, the type of a Merkle Patricia trie. With the type of a binary
// tree, StateDB would charge gas by the tree (EIP-4762), and this chain does not.
func (d *database) Type() state.DatabaseType { return state.TypeMPT }

func (d *database) Reader(common.Hash) (state.Reader, error) { return d.adapter, nil }
func (d *database) Iteratee(common.Hash) (state.Iteratee, error) {
	return nil, errUnsupported
}
func (d *database) OpenTrie(common.Hash) (state.Trie, error) {
	return &recorder{adapter: d.adapter}, nil
}
func (d *database) OpenStorageTrie(common.Hash, common.Address, common.Hash, state.Trie) (state.Trie, error) {
	return &recorder{adapter: d.adapter}, nil
}
func (d *database) TrieDB() *triedb.Database        { return d.nodes }
func (d *database) Commit(*state.StateUpdate) error { return errUnsupported }

// adapter connects go-ethereum's StateDB with a view. It collects the changes of
// the block, which Finish stages in the view, and answers reads from these changes
// or from the view. A lock protects the view, because StateDB calls the adapter
// from several goroutines, but a view may be used by only one at a time.
type adapter struct {
	mu       sync.Mutex
	view     *statedb.View
	accounts map[common.Address]statedb.Account // changed by the block; Exists is false if deleted
	storage  map[common.Address]map[common.Hash]common.Hash
	code     map[common.Address][]byte
	asked    map[slotOf]bool         // slots that are in the log of reads
	gone     map[common.Address]bool // accounts destroyed in this block, before Cancun
	err      error                   // set by the first read of destroyed storage
}

// slotOf is a slot of an account.
type slotOf struct {
	address common.Address
	slot    common.Hash
}

// begin sets the index of the transaction whose reads follow.
func (a *adapter) begin(transaction int) statedb.ReadMark {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.view.SetTransaction(transaction)
	// rewind can return to this position in the log of reads.
	return a.view.Mark()
}

// rewind removes the reads of a refused transaction, and returns false without
// reads.
func (a *adapter) rewind(mark statedb.ReadMark) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.view.Mark() == mark {
		return false
	}
	a.view.Rewind(mark)
	clear(a.asked)
	return true
}

// failed returns the first error of the view, the adapter or the StateDB.
func (a *adapter) failed(sdb *state.StateDB) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A failed read does not stop an execution, so every execution ends with this
	// check.
	if err := a.view.Err(); err != nil {
		return err
	}
	if a.err != nil {
		return a.err
	}
	return sdb.Error()
}

// stage stages the collected changes in the view.
func (a *adapter) stage(changes []accessChange) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Each change gets the index of the last transaction that made it.
	slots, accounts := lastTransactions(changes)
	for addr, code := range a.code {
		a.view.SetTransaction(accounts[addr])
		if _, err := a.view.SetCode(addr, code); err != nil {
			return err
		}
	}
	for addr, storage := range a.storage {
		for slot, value := range storage {
			// A slot that has its original value again counts as only read.
			if a.view.Storage(addr, slot) != value {
				a.view.SetTransaction(slots[slotOf{addr, slot}])
				a.view.SetStorage(addr, slot, value)
			}
		}
	}
	for addr, account := range a.accounts {
		a.view.SetTransaction(accounts[addr])
		if !account.Exists {
			a.view.DeleteAccount(addr)
		} else if err := a.view.SetAccount(addr, account); err != nil {
			return err
		}
	}
	a.view.SetTransaction(0)
	return a.view.Err()
}

// stored reports whether an account is known to have had storage before the block.
func (a *adapter) stored(addr common.Address) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	// The tree stores slots under hashed keys, so the slots of an account cannot be listed.
	// Check the slots that this block has read, and the first 64, which the account's header
	// contains.
	for _, r := range a.view.Reads() {
		if r.Kind == statedb.StorageAccess && r.Address == addr && a.view.Storage(addr, r.Slot) != (common.Hash{}) {
			return true
		}
	}
	for at := range a.asked { // the view's log of reads may be off
		if at.address == addr && a.view.Storage(addr, at.slot) != (common.Hash{}) {
			return true
		}
	}
	for slot := range byte(headerSlots) {
		if a.view.Storage(addr, common.Hash{31: slot}) != (common.Hash{}) {
			return true
		}
	}
	return false
}

// destroy drops the collected changes of an account that has destroyed itself.
func (a *adapter) destroy(addr common.Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// If the account is created again later in the block, StateDB does not report that it was
	// destroyed before. So remember it here.
	a.gone[addr] = true
	delete(a.storage, addr)
	delete(a.code, addr)
}

// headerSlots is the number of storage slots that EIP-7864 keeps in the header of an account.
const headerSlots = 64

// account returns an account, from the block's changes so far or from the view.
func (a *adapter) account(addr common.Address) statedb.Account {
	if account, settled := a.accounts[addr]; settled {
		return account
	}
	return a.view.Account(addr)
}

// Account implements state.StateReader.
func (a *adapter) Account(addr common.Address) (*types.StateAccount, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.account(addr)
	if err := a.view.Err(); err != nil || !account.Exists {
		return nil, err
	}
	if account.CodeHash == (common.Hash{}) { // not set by the host
		account.CodeHash = types.EmptyCodeHash
	}
	return &types.StateAccount{
		Nonce:    account.Nonce,
		Balance:  account.Balance.Clone(),
		Root:     types.EmptyRootHash, // storage has no separate trie
		CodeHash: account.CodeHash.Bytes(),
	}, nil
}

// Storage implements state.StateReader.
func (a *adapter) Storage(addr common.Address, slot common.Hash) (common.Hash, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if value, settled := a.storage[addr][slot]; settled {
		return value, nil
	}
	return a.slot(addr, slot), a.view.Err()
}

// slot returns a slot from the view.
func (a *adapter) slot(addr common.Address, slot common.Hash) common.Hash {
	a.asked[slotOf{addr, slot}] = true
	value := a.view.Storage(addr, slot)
	if value != (common.Hash{}) && a.gone[addr] && a.err == nil {
		a.err = fmt.Errorf("%w: %s", ErrDestroyed, addr)
	}
	return value
}

// machineState is the StateDB that the EVM uses. Before each change, it remembers
// the old value for the access list. It also logs every slot that the EVM reads,
// because StateDB does not read slots that are in its cache, and the log must not
// depend on that cache.
type machineState struct {
	*state.StateDB
	adapter *adapter
	touched *touched
}

// GetState implements vm.StateDB.
func (s *machineState) GetState(addr common.Address, slot common.Hash) common.Hash {
	value := s.StateDB.GetState(addr, slot)
	s.adapter.ask(addr, slot)
	return value
}

// GetStateAndCommittedState implements vm.StateDB.
func (s *machineState) GetStateAndCommittedState(addr common.Address, slot common.Hash) (value, committed common.Hash) {
	value, committed = s.StateDB.GetStateAndCommittedState(addr, slot)
	s.adapter.ask(addr, slot)
	return value, committed
}

// ask logs a slot as read, unless the log contains the slot already.
func (a *adapter) ask(addr common.Address, slot common.Hash) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked[slotOf{addr, slot}] {
		a.slot(addr, slot) // the view keeps the error
	}
}

// Has implements state.ContractCodeReader.
func (a *adapter) Has(addr common.Address, codeHash common.Hash) bool {
	return a.CodeSize(addr, codeHash) > 0
}

// Code implements state.ContractCodeReader.
func (a *adapter) Code(addr common.Address, _ common.Hash) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if code, settled := a.code[addr]; settled {
		return code
	}
	return a.view.CodeAt(addr)
}

// CodeSize implements state.ContractCodeReader. The size is stored in the account, so the code
// itself is not read and does not get into the witness.
func (a *adapter) CodeSize(addr common.Address, _ common.Hash) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.account(addr).CodeSize
}

// recorder takes the place of go-ethereum's trie. It stores nothing, and passes the
// values that StateDB writes to the adapter, which collects the changes of the block.
type recorder struct{ *adapter }

func (r *recorder) UpdateAccount(addr common.Address, account *types.StateAccount, codeLen int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	codeHash := common.BytesToHash(account.CodeHash)
	if codeLen == 0 && codeHash != types.EmptyCodeHash {
		codeLen = r.account(addr).CodeSize // not loaded, so not changed
	}
	r.accounts[addr] = statedb.Account{Exists: true, Nonce: account.Nonce, Balance: account.Balance, CodeHash: codeHash, CodeSize: codeLen}
	return nil
}

func (r *recorder) UpdateAccountBatch(addrs []common.Address, accounts []*types.StateAccount, codeLens []int) error {
	for i, addr := range addrs {
		if err := r.UpdateAccount(addr, accounts[i], codeLens[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) DeleteAccount(addr common.Address) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accounts[addr] = statedb.Account{Balance: new(uint256.Int)}
	delete(r.storage, addr)
	delete(r.code, addr)
	return nil
}

func (r *recorder) UpdateStorage(addr common.Address, key, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	slots := r.storage[addr]
	if slots == nil {
		slots = make(map[common.Hash]common.Hash)
		r.storage[addr] = slots
	}
	slots[common.BytesToHash(key)] = common.BytesToHash(value)
	return nil
}

func (r *recorder) UpdateStorageBatch(addr common.Address, keys, values [][]byte) error {
	for i, key := range keys {
		if err := r.UpdateStorage(addr, key, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// DeleteStorage stores zeros, like go-ethereum's binary trie.
func (r *recorder) DeleteStorage(addr common.Address, key []byte) error {
	return r.UpdateStorage(addr, key, nil)
}

func (r *recorder) UpdateContractCode(addr common.Address, _ common.Hash, code []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code[addr] = code
	return nil
}

func (r *recorder) GetAccount(addr common.Address) (*types.StateAccount, error) {
	return r.Account(addr)
}

func (r *recorder) GetStorage(addr common.Address, key []byte) ([]byte, error) {
	value, err := r.Storage(addr, common.BytesToHash(key))
	return common.TrimLeftZeroes(value[:]), err
}

// Hash returns a constant, because the view computes the root.
func (r *recorder) Hash() common.Hash { return types.EmptyRootHash }

func (r *recorder) GetKey([]byte) []byte                           { return nil }
func (r *recorder) PrefetchAccount([]common.Address) error         { return nil }
func (r *recorder) PrefetchStorage(common.Address, [][]byte) error { return nil }
func (r *recorder) Commit(bool) (common.Hash, *trienode.NodeSet)   { return types.EmptyRootHash, nil }
func (r *recorder) Witness() map[string][]byte                     { return nil }
func (r *recorder) NodeIterator([]byte) (trie.NodeIterator, error) { return nil, errUnsupported }

// IsUBT returns false, for the same reason as Type.
func (r *recorder) IsUBT() bool { return false }

// Prove returns an error, because only Merkle Patricia tries need it.
func (r *recorder) Prove([]byte, ethdb.KeyValueWriter) error { return errUnsupported }
