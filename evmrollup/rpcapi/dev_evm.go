package rpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/evmrollup"
)

// devEVM implements the methods of the namespace evm, with which development
// tools control when blocks are made and which time they have. The methods
// exist only in developer mode (Config.Dev).
type devEVM struct {
	*api
	mu        sync.Mutex
	snapshots []*evmrollup.Snapshot
	// first is the state at the start of the server, which hardhat_reset restores. It is
	// nil if that state could not be kept; firstErr is then the reason.
	first    *evmrollup.Snapshot
	firstErr error
}

func newEVM(a *api) *devEVM {
	e := &devEVM{api: a}
	e.first, e.firstErr = a.node.Keep()
	return e
}

// maxMined is the maximum number of blocks that a client can order with one call. It is
// small because each block is a work package, and a JAM core accepts only one package
// per slot.
const maxMined = 256

// mineArgs is the optional parameter of evm_mine. It is either the time of the
// first block in Unix seconds, as a number or a hex string, or an object with that
// time and the number of blocks.
type mineArgs struct {
	Timestamp *math.HexOrDecimal64 `json:"timestamp"` // in Unix seconds, or missing
	Blocks    *math.HexOrDecimal64 `json:"blocks"`    // number; 1 if missing
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *mineArgs) UnmarshalJSON(raw []byte) error {
	type object mineArgs
	if len(raw) > 0 && raw[0] == '{' {
		return json.Unmarshal(raw, (*object)(m))
	}
	return json.Unmarshal(raw, &m.Timestamp)
}

// Mine implements evm_mine. It makes a block with the pending transactions, or an empty
// block, and returns "0" when the block is latest. If the node is already making a
// block when the call arrives, Mine makes another one, because the first may lack the
// newest transactions.
func (e *devEVM) Mine(ctx context.Context, args *mineArgs) (string, error) {
	blocks := uint64(1)
	if args != nil && args.Blocks != nil {
		blocks = uint64(*args.Blocks)
	}
	if err := checkBlocks(blocks); err != nil {
		return "", err
	}
	if args != nil && args.Timestamp != nil {
		if err := e.node.SetNextTime(uint64(*args.Timestamp)); err != nil {
			return "", invalidParams("%v", err)
		}
	}
	return "0", e.node.Mine(ctx, blocks, 0)
}

func checkBlocks(n uint64) error {
	if n > maxMined {
		return invalidParams("%d blocks, want at most %d", n, maxMined)
	}
	return nil
}

// SetAutomine implements evm_setAutomine. If on is false, the node no longer makes
// blocks for pending transactions, but only when evm_mine or a similar method is
// called.
func (e *devEVM) SetAutomine(on bool) bool {
	e.node.SetAutomine(on)
	return true
}

// minInterval is the minimum interval between blocks. It is the duration of a
// slot in developer mode.
const minInterval = 100 * time.Millisecond

// SetIntervalMining implements evm_setIntervalMining as Hardhat defines it. If no
// block was made for the given number of milliseconds, the node makes a block even
// without transactions. 0 turns this off.
func (e *devEVM) SetIntervalMining(milliseconds math.HexOrDecimal64) (bool, error) {
	return e.setInterval(uint64(milliseconds), time.Millisecond)
}

func (e *devEVM) setInterval(n uint64, unit time.Duration) (bool, error) {
	const most = 24 * time.Hour
	every := time.Duration(min(n, uint64(most))) * unit
	if n > uint64(most/unit) || n > 0 && every < minInterval {
		return false, invalidParams("interval of %d × %v, want 0 or %v to %v; evm_setIntervalMining counts milliseconds and anvil_setIntervalMining seconds", n, unit, minInterval, most)
	}
	e.node.SetInterval(every)
	return true, nil
}

// IncreaseTime implements evm_increaseTime. It moves the clock for later blocks
// forward, and returns how many seconds that clock is ahead of the machine's clock.
func (e *devEVM) IncreaseTime(seconds math.HexOrDecimal64) (int64, error) {
	ahead, err := e.node.IncreaseTime(uint64(seconds))
	if err != nil {
		return 0, invalidParams("%v", err)
	}
	return ahead, nil
}

// SetNextBlockTimestamp implements evm_setNextBlockTimestamp. It sets the time of the next block in
// Unix seconds, and returns that time.
func (e *devEVM) SetNextBlockTimestamp(seconds math.HexOrDecimal64) (string, error) {
	if err := e.node.SetNextTime(uint64(seconds)); err != nil {
		return "", invalidParams("%v", err)
	}
	return fmt.Sprint(uint64(seconds)), nil
}

// SetBlockGasLimit implements evm_setBlockGasLimit, for all later blocks.
func (e *devEVM) SetBlockGasLimit(gas math.HexOrDecimal64) (bool, error) {
	if err := e.node.SetGasLimit(uint64(gas)); err != nil {
		return false, invalidParams("%v", err)
	}
	return true, nil
}

// SetNextBlockBaseFeePerGas implements hardhat_setNextBlockBaseFeePerGas and
// anvil_setNextBlockBaseFeePerGas. The base fee is in wei per gas.
func (t *devTool) SetNextBlockBaseFeePerGas(wei quantity) (bool, error) {
	if err := t.evm.node.SetNextBaseFee((*uint256.Int)(&wei).ToBig()); err != nil {
		return false, invalidParams("%v", err)
	}
	return true, nil
}

// Snapshot implements evm_snapshot. It keeps the current state, and returns a
// number with which evm_revert can go back to that state.
func (e *devEVM) Snapshot() (hexutil.Uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.node.Keep()
	if err != nil {
		return 0, err
	}
	e.snapshots = append(e.snapshots, s)
	return hexutil.Uint64(len(e.snapshots)), nil
}

// Revert implements evm_revert. It restores the state of a snapshot by making a block
// without transactions that has this state. Blocks keep their numbers, because JAM
// already has them. The time continues from the snapshot.
//
// As in Hardhat, transactions that were pending when the snapshot was made are pending
// again. Later transactions are removed from the pool and from the state, and can be
// sent again.
//
// Revert returns false if the snapshot does not exist. A successful revert deletes the
// snapshot and all later ones.
func (e *devEVM) Revert(ctx context.Context, id math.HexOrDecimal64) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := int(id) - 1
	if i < 0 || i >= len(e.snapshots) || e.snapshots[i] == nil {
		return false, nil
	}
	if err := e.node.Edit(ctx, evmrollup.Edit{Back: e.snapshots[i]}); err != nil {
		return false, err
	}
	clear(e.snapshots[i:])
	return true, nil
}

// resetArgs is the optional parameter of hardhat_reset.
type resetArgs struct {
	Forking *json.RawMessage `json:"forking"` // refused
}

// errForking is returned if a client wants the node to copy the state of another chain.
var errForking = codedError{errors.New("the node cannot fork another chain"), CodeUnsupported}

// Reset implements hardhat_reset and anvil_reset. It makes a block with the state at
// the start of the node, empties the pool, and deletes all snapshots. As with
// evm_revert, blocks keep their numbers. Later blocks have the time of the machine's
// clock. The settings of automine, of interval mining and of impersonated accounts do
// not change.
func (t *devTool) Reset(ctx context.Context, args *resetArgs) (bool, error) {
	e := t.evm
	switch {
	case args != nil && args.Forking != nil:
		return false, errForking
	case e.firstErr != nil:
		return false, e.firstErr
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.node.Edit(ctx, evmrollup.Edit{Back: e.first.AtPresent()}); err != nil {
		return false, err
	}
	clear(e.snapshots)
	return true, nil
}

// GetAutomine implements hardhat_getAutomine and anvil_getAutomine. It reports whether
// the node makes blocks for pending transactions by itself.
func (t *devTool) GetAutomine() bool { return t.evm.node.Automine() }

// DropTransaction implements hardhat_dropTransaction. It removes a transaction from the
// pool, and returns false if the transaction was not there.
func (t *devTool) DropTransaction(hash common.Hash) bool { return t.evm.node.RemovePooled(hash) == nil }

// DropTransaction implements anvil_dropTransaction. It removes a transaction from the
// pool and returns its hash, or returns null if the transaction was not there.
func (a *devAnvil) DropTransaction(hash common.Hash) *common.Hash {
	if !a.devTool.DropTransaction(hash) {
		return nil
	}
	return &hash
}

// ImpersonateAccount implements hardhat_impersonateAccount and
// anvil_impersonateAccount. Afterwards, eth_sendTransaction can send transactions from
// the account, which may be a contract, without its key. The account still pays for the
// gas.
func (t *devTool) ImpersonateAccount(addr common.Address) bool {
	t.evm.node.Impersonate(addr, true)
	return true
}

// StopImpersonatingAccount implements hardhat_stopImpersonatingAccount and
// anvil_stopImpersonatingAccount. It returns whether the account was impersonated.
func (t *devTool) StopImpersonatingAccount(addr common.Address) bool {
	return t.evm.node.Impersonate(addr, false)
}

// devAnvil implements the namespace anvil.
type devAnvil struct{ *devTool }

// SetIntervalMining implements anvil_setIntervalMining, which is evm_setIntervalMining with seconds
// instead of milliseconds.
func (a *devAnvil) SetIntervalMining(seconds math.HexOrDecimal64) (bool, error) {
	return a.evm.setInterval(uint64(seconds), time.Second)
}

// AutoImpersonateAccount implements anvil_autoImpersonateAccount. If on is true, every
// account is impersonated. If on is false, only accounts for which
// anvil_impersonateAccount was called are impersonated.
func (a *devAnvil) AutoImpersonateAccount(on bool) bool {
	a.evm.node.ImpersonateAll(on)
	return true
}

// quantity is a number of at most 256 bits, as development tools send it: a hex string,
// perhaps with leading zeros, or a decimal number.
type quantity uint256.Int

// UnmarshalJSON implements json.Unmarshaler.
func (q *quantity) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	n, ok := math.ParseBig256(text)
	if !ok || text == "" || n.Sign() < 0 {
		return fmt.Errorf("invalid hex or decimal integer %q", text)
	}
	(*uint256.Int)(q).SetFromBig(n)
	return nil
}

// devTool implements the methods that the namespaces hardhat and anvil have in common.
type devTool struct{ evm *devEVM }

// Mine implements hardhat_mine and anvil_mine. It makes the given number of blocks, by
// default one. interval is the time between two of these blocks in seconds.
func (t *devTool) Mine(ctx context.Context, blocks, interval *math.HexOrDecimal64) (bool, error) {
	n := uint64(1)
	if blocks != nil {
		n = uint64(*blocks)
	}
	if err := checkBlocks(n); err != nil {
		return false, err
	}
	var seconds uint64
	if interval != nil && n > 1 {
		seconds = uint64(*interval)
		first := t.evm.node.NextTime()
		if most := (evmrollup.MaxTime - min(first, evmrollup.MaxTime)) / (n - 1); seconds > most {
			return false, invalidParams("%d blocks that are %d seconds apart, want at most %d", n, seconds, most)
		}
	}
	err := t.evm.node.Mine(ctx, n, seconds)
	return err == nil, err
}

// SetBalance implements hardhat_setBalance and anvil_setBalance. The balance is in
// wei. Like the other methods that change an account, SetBalance makes a block with
// the change and returns when that block is latest.
func (t *devTool) SetBalance(ctx context.Context, account common.Address, wei quantity) (bool, error) {
	return t.edit(ctx, evmrollup.Edit{Address: account, Balance: (*uint256.Int)(&wei)})
}

// SetNonce implements hardhat_setNonce and anvil_setNonce.
func (t *devTool) SetNonce(ctx context.Context, account common.Address, nonce math.HexOrDecimal64) (bool, error) {
	return t.edit(ctx, evmrollup.Edit{Address: account, Nonce: (*uint64)(&nonce)})
}

// SetCode implements hardhat_setCode and anvil_setCode.
func (t *devTool) SetCode(ctx context.Context, account common.Address, code hexutil.Bytes) (bool, error) {
	return t.edit(ctx, evmrollup.Edit{Address: account, Code: (*[]byte)(&code)})
}

// SetStorageAt implements hardhat_setStorageAt and anvil_setStorageAt.
func (t *devTool) SetStorageAt(ctx context.Context, account common.Address, slot quantity, value common.Hash) (bool, error) {
	key := common.Hash((*uint256.Int)(&slot).Bytes32())
	return t.edit(ctx, evmrollup.Edit{Address: account, Slot: &key, Value: value})
}

func (t *devTool) edit(ctx context.Context, e evmrollup.Edit) (bool, error) {
	err := t.evm.node.Edit(ctx, e)
	if errors.Is(err, evmrollup.ErrEdit) {
		err = invalidParams("%v", err)
	}
	return err == nil, err
}
