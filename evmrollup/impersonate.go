package evmrollup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// ErrNotImpersonated is returned for a transaction without a signature if the account
// of its sender is not impersonated.
var ErrNotImpersonated = errors.New("evmrollup: the account is not impersonated")

// impersonation lets a developer send transactions from accounts and contracts without
// their keys. Such a transaction contains the sender's address in place of a signature,
// so that every execution finds the same sender. Only a chain in memory accepts these
// transactions, because anyone could make them.
type impersonation struct {
	mu       sync.Mutex
	accounts map[common.Address]bool // false: formerly impersonated
	all      bool                    // every account is
	everAll  bool
}

// set turns the impersonation of an account on or off, and returns the old setting.
func (i *impersonation) set(addr common.Address, on bool) (was bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	was, known := i.accounts[addr]
	if i.accounts == nil {
		i.accounts = make(map[common.Address]bool)
	}
	if on || known {
		i.accounts[addr] = on
	}
	return was
}

// setAll turns the impersonation of all accounts on or off. An account for which set
// has turned it on stays impersonated.
func (i *impersonation) setAll(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all, i.everAll = on, i.everAll || on
}

// now reports whether an account is impersonated.
func (i *impersonation) now(addr common.Address) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.all || i.accounts[addr]
}

// ever reports whether an account is or was impersonated.
func (i *impersonation) ever(addr common.Address) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	// The transactions of such an account stay valid, because a block with them may be
	// undone and made again.
	_, known := i.accounts[addr]
	return i.everAll || known
}

// list returns the accounts for which set has turned impersonation on, sorted.
func (i *impersonation) list() []common.Address {
	i.mu.Lock()
	defer i.mu.Unlock()
	var now []common.Address
	for _, addr := range slices.SortedFunc(maps.Keys(i.accounts), common.Address.Cmp) {
		if i.accounts[addr] {
			now = append(now, addr)
		}
	}
	return now
}

// Impersonate sets whether SignAs can make transactions of an account without its key.
// It returns the previous setting. A chain with a disk refuses such transactions.
func (c *Chain) Impersonate(addr common.Address, on bool) (was bool) {
	return c.impersonation.set(addr, on)
}

// ImpersonateAll sets whether SignAs can make transactions of every account without its
// key. If on is false, SignAs can still do so for the accounts for which Impersonate
// has turned it on.
func (c *Chain) ImpersonateAll(on bool) { c.impersonation.setAll(on) }

// Impersonates reports whether SignAs makes transactions of an account without its key.
func (c *Chain) Impersonates(addr common.Address) bool { return c.impersonation.now(addr) }

// Impersonated returns the accounts for which Impersonate has turned impersonation on, sorted.
func (c *Chain) Impersonated() []common.Address { return c.impersonation.list() }

// SignAs returns a copy of a transaction that is sent by the account from, without the
// key of that account. The error wraps [ErrNotImpersonated] if the account is not
// impersonated.
func (c *Chain) SignAs(tx *types.Transaction, from common.Address) (*types.Transaction, error) {
	if !c.impersonation.now(from) {
		return nil, fmt.Errorf("%w: %s", ErrNotImpersonated, from)
	}
	return tx.WithSignature(c.signer, slices.Concat(impersonated[:], from[:], one[:]))
}

// Signer returns the signer that recovers the senders of the chain's transactions. On a
// chain in memory, it also accepts transactions that SignAs has made. It is safe for
// concurrent use.
func (c *Chain) Signer() types.Signer { return c.signer }

// sender returns the sender of a transaction for the pool.
func (c *Chain) sender(tx *types.Transaction) (common.Address, error) {
	from, err := types.Sender(c.signer, tx)
	// The transaction has no real signature, and its account was never impersonated.
	if _, as := impersonates(tx); err == nil && as && !c.impersonation.ever(from) {
		return from, fmt.Errorf("%w: %s", ErrNotImpersonated, from)
	}
	return from, err
}

// newSigner returns a chain's signer. Only a chain in memory accepts impersonated
// senders.
func newSigner(rules types.Signer, memory bool) types.Signer {
	if memory {
		return impersonatingSigner{rules}
	}
	return rules
}

// A transaction of an impersonated account has these values in place of a signature: R
// is "impersonated" followed by the address, S is 1, and V is 0. They are in the range
// of valid signatures, so that clients can decode the transaction.
var (
	impersonated = [12]byte([]byte("impersonated"))
	one          = [crypto.SignatureLength - common.HashLength]byte{common.HashLength - 1: 1}
)

// impersonates returns the address that a transaction has in place of a signature, if
// any.
func impersonates(tx *types.Transaction) (from common.Address, ok bool) {
	_, r, s := tx.RawSignatureValues()
	if r.BitLen() > 256 || !s.IsUint64() || s.Uint64() != 1 {
		return from, false
	}
	var word common.Hash
	r.FillBytes(word[:])
	return common.Address(word[len(impersonated):]), [12]byte(word[:len(impersonated)]) == impersonated
}

// impersonatingSigner is a signer that also accepts transactions from SignAs.
type impersonatingSigner struct{ types.Signer }

// Sender implements types.Signer.
func (s impersonatingSigner) Sender(tx *types.Transaction) (common.Address, error) {
	from, ok := impersonates(tx)
	if !ok {
		return s.Signer.Sender(tx)
	}
	if id := tx.ChainId(); id.Cmp(s.ChainID()) != 0 {
		return common.Address{}, fmt.Errorf("%w: have %d want %d", types.ErrInvalidChainId, id, s.ChainID())
	}
	return from, nil
}

// Equal implements types.Signer.
func (s impersonatingSigner) Equal(other types.Signer) bool {
	o, ok := other.(impersonatingSigner)
	return ok && s.Signer.Equal(o.Signer)
}
