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

	"github.com/jamq/jamq/statedb"
)

// errUnsupported is what the parts of go-ethereum's interfaces answer that execution does not use.
var errUnsupported = errors.New("evm: not supported on a view")

// database shows a view to go-ethereum's StateDB.
type database struct {
	*adapter
	// nodes is an empty trie database, because StateDB asks whether it is one.
	nodes *triedb.Database
}

// openState returns a StateDB on a view. Reads go to the view at once; writes when its IntermediateRoot is asked for.
func openState(view *statedb.View) (*state.StateDB, *adapter, error) {
	a := &adapter{view: view}
	db := &database{adapter: a, nodes: triedb.NewDatabase(rawdb.NewMemoryDatabase(), nil)}
	sdb, err := state.New(types.EmptyRootHash, db)
	if err != nil {
		return nil, nil, fmt.Errorf("evm: open state: %w", err)
	}
	return sdb, a, nil
}

// Type says Merkle Patricia trie: under the other type StateDB applies the gas rules of EIP-4762.
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

// adapter reads from and writes to a view. StateDB does both from several goroutines at once, a view belongs to one.
type adapter struct {
	mu   sync.Mutex
	view *statedb.View
	err  error // the first refused write: StateDB keeps only its text
}

// begin says which transaction the reads from now on belong to.
func (a *adapter) begin(transaction int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.view.SetTransaction(transaction)
}

// failed returns what went wrong: a refused write, a read of what a stateless view does not have, or what the StateDB itself found. An error of a
// reader does not stop an execution, so this must be asked after each.
func (a *adapter) failed(sdb *state.StateDB) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, err := range []error{a.err, a.view.Err(), sdb.Error()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Account implements state.StateReader.
func (a *adapter) Account(addr common.Address) (*types.StateAccount, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.view.Account(addr)
	if err := a.view.Err(); err != nil || !account.Exists {
		return nil, err
	}
	return &types.StateAccount{
		Nonce:    account.Nonce,
		Balance:  account.Balance,
		Root:     types.EmptyRootHash, // storage is not a trie of its own
		CodeHash: account.CodeHash.Bytes(),
	}, nil
}

// Storage implements state.StateReader.
func (a *adapter) Storage(addr common.Address, slot common.Hash) (common.Hash, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view.Storage(addr, slot), a.view.Err()
}

// Has implements state.ContractCodeReader.
func (a *adapter) Has(addr common.Address, codeHash common.Hash) bool {
	return a.Code(addr, codeHash) != nil
}

// Code implements state.ContractCodeReader.
func (a *adapter) Code(_ common.Address, codeHash common.Hash) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view.Code(codeHash)
}

// CodeSize implements state.ContractCodeReader.
func (a *adapter) CodeSize(addr common.Address, codeHash common.Hash) int {
	return len(a.Code(addr, codeHash))
}

// recorder takes the net writes of a StateDB over into the view. StateDB keeps errors of these calls for its Error method.
type recorder struct{ *adapter }

func (r *recorder) UpdateAccount(addr common.Address, account *types.StateAccount, codeLen int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	codeHash := common.BytesToHash(account.CodeHash)
	if codeLen == 0 && codeHash != types.EmptyCodeHash {
		codeLen = r.view.Account(addr).CodeSize // the code was not loaded, so it did not change
	}
	return r.keep(r.view.SetAccount(addr, statedb.Account{Nonce: account.Nonce, Balance: account.Balance, CodeHash: codeHash, CodeSize: codeLen}))
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
	r.view.DeleteAccount(addr)
	return nil
}

func (r *recorder) UpdateStorage(addr common.Address, key, value []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.SetStorage(addr, common.BytesToHash(key), common.BytesToHash(value))
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
	_, err := r.view.SetCode(addr, code)
	return r.keep(err)
}

// keep remembers the first error.
func (r *recorder) keep(err error) error {
	if r.err == nil {
		r.err = err
	}
	return err
}

func (r *recorder) GetAccount(addr common.Address) (*types.StateAccount, error) {
	return r.Account(addr)
}

func (r *recorder) GetStorage(addr common.Address, key []byte) ([]byte, error) {
	value, err := r.Storage(addr, common.BytesToHash(key))
	return common.TrimLeftZeroes(value[:]), err
}

// Hash is asked for once per account and once per block; the root is the view's business.
func (r *recorder) Hash() common.Hash { return types.EmptyRootHash }

func (r *recorder) GetKey([]byte) []byte                           { return nil }
func (r *recorder) PrefetchAccount([]common.Address) error         { return nil }
func (r *recorder) PrefetchStorage(common.Address, [][]byte) error { return nil }
func (r *recorder) Commit(bool) (common.Hash, *trienode.NodeSet)   { return types.EmptyRootHash, nil }
func (r *recorder) Witness() map[string][]byte                     { return nil }
func (r *recorder) NodeIterator([]byte) (trie.NodeIterator, error) { return nil, errUnsupported }

// IsUBT says no, like Type.
func (r *recorder) IsUBT() bool { return false }

// Prove is for Merkle Patricia tries.
func (r *recorder) Prove([]byte, ethdb.KeyValueWriter) error { return errUnsupported }
