package rpcapi

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
)

// stateDiff contains the accounts that a transaction has changed, in OpenEthereum's
// format.
type stateDiff map[common.Address]*accountDiff

// accountDiff has the changes of one account in JSON. Storage has only changed slots.
type accountDiff struct {
	Balance any                 `json:"balance"`
	Code    any                 `json:"code"`
	Nonce   any                 `json:"nonce"`
	Storage map[common.Hash]any `json:"storage"`
}

// change returns the JSON for a value that a transaction may have changed. For the same
// value it is "=". Otherwise it is an object whose key is "+" if the account is new,
// "-" if the account no longer exists, and "*" in all other cases.
func change(from, to string, existed, exists bool) any {
	switch {
	case !existed:
		return map[string]string{"+": to}
	case !exists:
		return map[string]string{"-": from}
	case from == to:
		return "="
	}
	return map[string]map[string]string{"*": {"from": from, "to": to}}
}

// account is an account before a transaction, with the slots that the transaction
// writes.
type account struct {
	balance *big.Int
	nonce   uint64
	code    []byte
	storage map[common.Hash]common.Hash
}

func accountOf(sdb *state.StateDB, address common.Address) *account {
	return &account{
		sdb.GetBalance(address).ToBig(), sdb.GetNonce(address), sdb.GetCode(address), make(map[common.Hash]common.Hash),
	}
}

// exists reports whether the account is not empty (EIP-161).
func (a *account) exists() bool { return a.balance.Sign() != 0 || a.nonce != 0 || len(a.code) > 0 }

// diffTracer records each account before a transaction changes it for the first time.
// The result compares the records with the state after the transaction, so changes that
// the transaction has undone do not appear.
type diffTracer struct {
	sdb    *state.StateDB
	before map[common.Address]*account
}

// hook adds the hooks of this tracer to hooks.
func (d *diffTracer) hook(hooks *tracing.Hooks) {
	hooks.OnBalanceChange = func(address common.Address, old, _ *big.Int, _ tracing.BalanceChangeReason) {
		if a, first := d.at(address); first {
			a.balance = old
		}
	}
	hooks.OnNonceChange = func(address common.Address, old, _ uint64) {
		if a, first := d.at(address); first {
			a.nonce = old
		}
	}
	hooks.OnCodeChange = func(address common.Address, _ common.Hash, old []byte, _ common.Hash, _ []byte) {
		if a, first := d.at(address); first {
			a.code = old
		}
	}
	hooks.OnStorageChange = func(address common.Address, slot, old, _ common.Hash) {
		a, _ := d.at(address)
		if _, seen := a.storage[slot]; !seen {
			a.storage[slot] = old
		}
	}
}

// at returns the record of an account before its first change. If first is true, the
// record is new, and the caller must put back the old value of the field that has just
// changed.
func (d *diffTracer) at(address common.Address) (a *account, first bool) {
	if a := d.before[address]; a != nil {
		return a, false
	}
	a = accountOf(d.sdb, address)
	d.before[address] = a
	return a, true
}

// result compares the recorded accounts with the state after the transaction. size is
// the approximate size of the result in JSON, in bytes.
func (d *diffTracer) result() (diff stateDiff, size int) {
	diff = make(stateDiff, len(d.before))
	for address, from := range d.before {
		to := accountOf(d.sdb, address)
		existed, exists := from.exists(), to.exists()
		compare := func(from, to string) any {
			if from != to || !existed || !exists {
				size += len(from) + len(to)
			}
			return change(from, to, existed, exists)
		}
		slots := make(map[common.Hash]any)
		for slot, old := range from.storage {
			if value := d.sdb.GetState(address, slot); value != old {
				slots[slot] = compare(old.Hex(), value.Hex())
			}
		}
		same := from.balance.Cmp(to.balance) == 0 && from.nonce == to.nonce && string(from.code) == string(to.code)
		if same && len(slots) == 0 {
			continue
		}
		size += emptyTrace
		diff[address] = &accountDiff{
			compare(hexutil.EncodeBig(from.balance), hexutil.EncodeBig(to.balance)),
			compare(hexutil.Encode(from.code), hexutil.Encode(to.code)),
			compare(hexutil.EncodeUint64(from.nonce), hexutil.EncodeUint64(to.nonce)), slots,
		}
	}
	return diff, size
}
