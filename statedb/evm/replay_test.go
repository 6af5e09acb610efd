package evm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	gomath "github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

// The module of go-ethereum contains transactions of real networks, with the
// state before them and the results of its tracers. Each runs on a view and on
// go-ethereum's state, under the rules of its time. Both must agree with each
// other, and with the recorded trace if that covers the whole transaction.

// leftOut are the recordings that a view does not run, and why.
var leftOut = map[string]string{
	"call_tracer_flat/suicide.json":               destroyed,
	"prestate_tracer_with_diff_mode/suicide.json": destroyed,
}

const destroyed = "before Cancun an account that destroys itself loses its storage, which a tree of hashed keys cannot find (EIP-6780)"

// recording is a file of go-ethereum's.
type recording struct {
	Genesis *core.Genesis `json:"genesis"`
	Context struct {
		Number     gomath.HexOrDecimal64   `json:"number"`
		Difficulty *gomath.HexOrDecimal256 `json:"difficulty"`
		Time       gomath.HexOrDecimal64   `json:"timestamp"`
		GasLimit   gomath.HexOrDecimal64   `json:"gasLimit"`
		Miner      common.Address          `json:"miner"`
		BaseFee    *gomath.HexOrDecimal256 `json:"baseFeePerGas"`
	} `json:"context"`
	Input  string          `json:"input"` // hexadecimal, mostly with 0x
	Result json.RawMessage `json:"result"`
}

// trace is the record of the call tracer for the whole transaction.
type trace struct {
	GasUsed *hexutil.Uint64 `json:"gasUsed"`
	Output  hexutil.Bytes   `json:"output"`
	Error   string          `json:"error"`
}

// recordings returns the files by directory and name.
func recordings(t *testing.T) map[string]*recording {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	require.NoError(t, err)
	root := filepath.Join(strings.TrimSpace(string(out)), "eth", "tracers", "internal", "tracetest", "testdata")
	found := make(map[string]*recording)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		r := new(recording)
		if err := json.Unmarshal(raw, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found[filepath.ToSlash(name)] = r
		return nil
	}))
	return found
}

// context is the block's, under the rules of its time.
func (r *recording) context() vm.BlockContext {
	number := new(big.Int).SetUint64(uint64(r.Context.Number))
	c := vm.BlockContext{
		CanTransfer: core.CanTransfer, Transfer: core.Transfer, Coinbase: r.Context.Miner, BlockNumber: number,
		Time: uint64(r.Context.Time), GasLimit: uint64(r.Context.GasLimit), Difficulty: (*big.Int)(r.Context.Difficulty), BaseFee: new(big.Int),
	}
	cfg := r.Genesis.Config
	if cfg.IsLondon(number) {
		c.BaseFee = (*big.Int)(r.Context.BaseFee)
	}
	if cfg.TerminalTotalDifficulty != nil && cfg.TerminalTotalDifficulty.Sign() == 0 {
		c.Random = &r.Genesis.Mixhash
	}
	if r.Genesis.ExcessBlobGas != nil && r.Genesis.BlobGasUsed != nil {
		header := &types.Header{Number: cfg.LondonBlock, Time: *cfg.CancunTime}
		excess := eip4844.CalcExcessBlobGas(cfg, header, r.Genesis.Timestamp)
		header.ExcessBlobGas = &excess
		c.BlobBaseFee = eip4844.CalcBlobFee(cfg, header)
	}
	return c
}

// outcome is the result of a transaction.
type outcome struct {
	GasUsed uint64
	Output  []byte
	Failed  string
	Logs    []*types.Log
}

// run executes the transaction on a state and settles its writes.
func (r *recording) run(t *testing.T, sdb *state.StateDB) outcome {
	tx := new(types.Transaction)
	require.NoError(t, tx.UnmarshalBinary(common.FromHex(r.Input)))
	c := r.context()
	msg, err := core.TransactionToMessage(tx, types.MakeSigner(r.Genesis.Config, c.BlockNumber, c.Time), c.BaseFee)
	require.NoError(t, err)
	machine := vm.NewEVM(c, sdb, r.Genesis.Config, vm.Config{})
	defer machine.Release()
	sdb.SetTxContext(tx.Hash(), 0, 0)
	result, err := core.ApplyMessage(machine, msg, core.NewGasPool(c.GasLimit))
	require.NoError(t, err)
	require.NoError(t, sdb.Error())
	o := outcome{GasUsed: result.UsedGas, Output: bytes.Clone(result.ReturnData), Logs: sdb.GetLogs(tx.Hash(), c.BlockNumber.Uint64(), common.Hash{}, c.Time)}
	// Frontier did not count this as a failure.
	if frontier := !r.Genesis.Config.IsHomestead(c.BlockNumber); result.Err != nil && !(frontier && errors.Is(result.Err, vm.ErrCodeStoreOutOfGas)) {
		o.Failed = result.Err.Error()
	}
	sdb.IntermediateRoot(r.Genesis.Config.Rules(c.BlockNumber, c.Random != nil, c.Time))
	return o
}

// theirs is the state before the transaction in go-ethereum's own database.
func (r *recording) theirs(t *testing.T) *state.StateDB {
	db := state.NewDatabaseForTesting()
	sdb, err := state.New(types.EmptyRootHash, db)
	require.NoError(t, err)
	for addr, account := range r.Genesis.Alloc {
		sdb.SetCode(addr, account.Code, 0)
		sdb.SetNonce(addr, account.Nonce, 0)
		sdb.SetBalance(addr, uint256.MustFromBig(account.Balance), 0)
		for slot, value := range account.Storage {
			sdb.SetState(addr, slot, value)
		}
	}
	root, err := sdb.Commit(params.Rules{}, 0)
	require.NoError(t, err)
	sdb, err = state.New(root, db)
	require.NoError(t, err)
	return sdb
}

func TestRealTransactions(t *testing.T) {
	files := recordings(t)
	require.GreaterOrEqual(t, len(files), 90)
	ran, refused, transactions := 0, 0, make(map[common.Hash]bool)
	for name, reason := range leftOut {
		if files[name] == nil {
			t.Errorf("%s is left out and does not exist", name)
		}
		t.Logf("left out: %s: %s", name, reason)
	}
	for name, r := range files {
		if leftOut[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			view, err := statedb.NewStore().View(statedb.EmptyRoot)
			require.NoError(t, err)
			if err := Genesis(view, r.Genesis.Alloc); r.tooRich() {
				require.ErrorIs(t, err, statedb.ErrBalanceRange)
				refused++
				return
			} else {
				require.NoError(t, err)
			}
			_, err = view.Commit()
			require.NoError(t, err)
			writes := newAdapter(view)
			mine, err := writes.open()
			require.NoError(t, err)
			theirs := r.theirs(t)
			want, got := r.run(t, theirs), r.run(t, mine)
			require.NoError(t, errors.Join(mine.Error(), writes.stage(nil)))
			require.Equal(t, want, got)
			r.compare(t, name, got)
			r.compareStates(t, theirs, view)
			ran++
			transactions[crypto.Keccak256Hash(common.FromHex(r.Input))] = true
		})
	}
	t.Logf("%d files run, %d transactions; %d refused for a balance of more than 128 bits; %d left out", ran, len(transactions), refused, len(leftOut))
}

// tooRich reports whether an account has more than a leaf can hold (EIP-7864: 128 bits).
func (r *recording) tooRich() bool {
	for _, account := range r.Genesis.Alloc {
		if account.Balance.BitLen() > 128 {
			return true
		}
	}
	return false
}

// compare checks what the trace says, if it is a whole call's.
func (r *recording) compare(t *testing.T, name string, got outcome) {
	var want trace
	if !strings.HasPrefix(name, "call_tracer/") && !strings.HasPrefix(name, "call_tracer_legacy/") && !strings.HasPrefix(name, "call_tracer_withLog/") {
		return
	}
	require.NoError(t, json.Unmarshal(r.Result, &want))
	require.EqualValues(t, *want.GasUsed, got.GasUsed)
	require.Equal(t, want.Error != "", got.Failed != "", "%s, want %s", got.Failed, want.Error)
	if want.Error == "" && r.creates(t) {
		return // the tracer's output is the code
	}
	if want.Error == "" || len(want.Output) > 0 {
		require.Equal(t, hexutil.Encode(want.Output), hexutil.Encode(got.Output))
	}
}

func (r *recording) creates(t *testing.T) bool {
	tx := new(types.Transaction)
	require.NoError(t, tx.UnmarshalBinary(common.FromHex(r.Input)))
	return tx.To() == nil
}

// compareStates compares all accounts that there were, and the storage that there was or is.
func (r *recording) compareStates(t *testing.T, theirs *state.StateDB, view *statedb.View) {
	for addr, before := range r.Genesis.Alloc {
		account := view.Account(addr)
		require.Equal(t, theirs.Exist(addr), account.Exists, "%s", addr)
		require.Equal(t, theirs.GetNonce(addr), account.Nonce)
		require.Equal(t, theirs.GetBalance(addr).ToBig(), account.Balance.ToBig())
		if account.Exists {
			require.Equal(t, theirs.GetCodeHash(addr), account.CodeHash)
		}
		for slot := range before.Storage {
			require.Equal(t, theirs.GetState(addr, slot), view.Storage(addr, slot))
		}
	}
}
