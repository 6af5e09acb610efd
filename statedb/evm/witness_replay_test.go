package evm

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

// fixture is a transaction of a real network with the state before it: a file
// of go-ethereum's tests of its call tracer.
type fixture struct {
	Genesis struct {
		Alloc  types.GenesisAlloc  `json:"alloc"`
		Config *params.ChainConfig `json:"config"`
	} `json:"genesis"`
	Context struct {
		Number     math.HexOrDecimal64   `json:"number"`
		Difficulty *math.HexOrDecimal256 `json:"difficulty"`
		Time       math.HexOrDecimal64   `json:"timestamp"`
		GasLimit   math.HexOrDecimal64   `json:"gasLimit"`
		Miner      common.Address        `json:"miner"`
		BaseFee    *math.HexOrDecimal256 `json:"baseFeePerGas"`
	} `json:"context"`
	Input  hexutil.Bytes `json:"input"`
	Result struct {
		GasUsed hexutil.Uint64 `json:"gasUsed"`
		Output  hexutil.Bytes  `json:"output"`
		Error   string         `json:"error"`
	} `json:"result"`
}

// refusedFixtures are the fixtures that cannot run on a view, with the reason.
var refusedFixtures = map[string]error{
	"blob_tx.json": ErrBlob, // a rollup on JAM has no blobs
	// A development network whose accounts have more than 128 bits of wei.
	"inner_revert_reason.json": statedb.ErrBalanceRange,
}

func (f *fixture) header() *types.Header {
	h := &types.Header{
		Number: new(big.Int).SetUint64(uint64(f.Context.Number)), Time: uint64(f.Context.Time), GasLimit: uint64(f.Context.GasLimit),
		Coinbase: f.Context.Miner, Difficulty: (*big.Int)(f.Context.Difficulty), BaseFee: (*big.Int)(f.Context.BaseFee),
	}
	return h
}

// settled is the result of a transaction.
type settled struct {
	receipt *types.Receipt
	output  []byte
	root    common.Hash
}

func (f *fixture) run(view *statedb.View, tx *types.Transaction) (o settled, err error) {
	b, err := NewBlock(view, f.Genesis.Config, f.header(), noHashes)
	if err != nil {
		return o, err
	}
	b.machine.Tracer = &tracing.Hooks{OnExit: func(depth int, output []byte, _ uint64, _ error, _ bool) {
		if depth == 0 {
			o.output = slices.Clone(output)
		}
	}}
	if o.receipt, err = b.Apply(tx); err != nil {
		return o, err
	}
	if err := b.Finish(); err != nil {
		return o, err
	}
	o.root, err = view.Root()
	return o, err
}

// Transactions of real networks have the gas, the status and the result that
// they had there, on a view and on its witness alone.
func TestRealTransactionsOnTheirWitness(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	require.NoError(t, err)
	dir := filepath.Join(strings.TrimSpace(string(out)), "eth", "tracers", "internal", "tracetest", "testdata", "call_tracer")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "go-ethereum's module has no transactions in %s", dir)
	ran := map[string]error{}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) { ran[name] = replay(t, file) })
	}
	for name, err := range ran {
		if want := refusedFixtures[name]; want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, want, name)
		}
	}
	t.Logf("%d of %d files ran; left out: %s", len(files)-len(refusedFixtures), len(files), fmt.Sprint(slices.Sorted(maps.Keys(refusedFixtures))))
}

// replay returns why a fixture cannot run; if it can, it must run as it did.
func replay(t *testing.T, file string) error {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var f fixture
	require.NoError(t, json.Unmarshal(raw, &f))
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(f.Input); err != nil {
		return err
	}
	view, err := statedb.NewStore().View(statedb.EmptyRoot)
	require.NoError(t, err)
	if err := Genesis(view, f.Genesis.Alloc); err != nil {
		return err
	}
	pre := commit(t, view)
	done, err := f.run(view, tx)
	if err != nil {
		return err
	}
	check := func(o settled) {
		require.Equal(t, uint64(f.Result.GasUsed), o.receipt.GasUsed)
		require.Equal(t, f.Result.Error == "", o.receipt.Status == types.ReceiptStatusSuccessful, f.Result.Error)
		if tx.To() != nil || f.Result.Error != "" {
			require.Equal(t, []byte(f.Result.Output), append([]byte(nil), o.output...))
		}
	}
	check(done)

	w, err := view.Witness()
	require.NoError(t, err)
	w, err = statedb.ParseWitness(w.Encode())
	require.NoError(t, err)
	post, err := statedb.Verify(w, pre, view.Writes())
	require.NoError(t, err)
	require.Equal(t, done.root, post)
	stateless, err := statedb.NewStateless(w, pre)
	require.NoError(t, err)
	again, err := f.run(stateless, tx)
	require.NoError(t, err)
	check(again)
	require.Equal(t, done.root, again.root)
	require.NoError(t, stateless.Matches(w))
	return nil
}
