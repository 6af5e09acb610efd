package txpool

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// realBlock is an execution payload of a beacon block that go-ethereum uses as
// test data. Two are of mainnet and three of a test network.
type realBlock struct {
	name              string
	txs               []*types.Transaction
	from              map[common.Hash]common.Address
	gasLimit, gasUsed uint64
	baseFee           *big.Int
	chainID           *big.Int
	// gas is the gas that each transaction uses here. The payload contains only
	// the sum, so the uses are derived from it: see share.
	gas map[common.Hash]uint64
}

// realBlocks reads the blocks from the source of go-ethereum's module.
var realBlocks = sync.OnceValues(func() (blocks []*realBlock, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		return nil, fmt.Errorf("no source of go-ethereum: %w", err)
	}
	for _, name := range []string{"capella", "deneb", "electra_consolidations", "electra_deposits", "electra_withdrawals"} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "beacon", "types", "testdata", "block_"+name+".json"))
		if err != nil {
			return nil, err
		}
		b, err := readBlock(name, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
})

func readBlock(name string, data []byte) (*realBlock, error) {
	var parsed struct {
		Body struct {
			Payload struct {
				GasLimit     string          `json:"gas_limit"`
				GasUsed      string          `json:"gas_used"`
				BaseFee      string          `json:"base_fee_per_gas"`
				Transactions []hexutil.Bytes `json:"transactions"`
			} `json:"execution_payload"`
		} `json:"body"`
	}
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil, err
	}
	p := parsed.Body.Payload
	b := &realBlock{name: name, from: make(map[common.Hash]common.Address)}
	var err error
	if b.gasLimit, err = strconv.ParseUint(p.GasLimit, 10, 64); err != nil {
		return nil, err
	}
	if b.gasUsed, err = strconv.ParseUint(p.GasUsed, 10, 64); err != nil {
		return nil, err
	}
	b.baseFee, _ = new(big.Int).SetString(p.BaseFee, 10)
	for _, raw := range p.Transactions {
		tx := new(types.Transaction)
		if err := tx.UnmarshalBinary(raw); err != nil {
			return nil, err
		}
		if b.txs = append(b.txs, tx); tx.Protected() {
			b.chainID = tx.ChainId()
		}
	}
	for _, tx := range b.txs {
		if b.from[tx.Hash()], err = types.Sender(types.LatestSignerForChainID(b.chainID), tx); err != nil {
			return nil, err
		}
	}
	return b, b.share()
}

// share derives the gas that each transaction uses. A transfer uses 21,000. Each
// other transaction uses at least its cost before the first instruction, and the
// same share of the rest of its limit, so that the sum is the block's gas used.
func (b *realBlock) share() error {
	b.gas = make(map[common.Hash]uint64)
	least, rest := uint64(0), uint64(0)
	for _, tx := range b.txs {
		b.gas[tx.Hash()] = txGas
		if !isTransfer(tx) {
			b.gas[tx.Hash()] = min(used(tx), tx.Gas())
			rest += tx.Gas() - b.gas[tx.Hash()]
		}
		least += b.gas[tx.Hash()]
	}
	if least > b.gasUsed || b.gasUsed-least > rest {
		return fmt.Errorf("gas used %d, want %d to %d", b.gasUsed, least, least+rest)
	}
	missing := b.gasUsed - least
	for _, tx := range b.txs {
		if isTransfer(tx) {
			continue
		}
		spare := tx.Gas() - b.gas[tx.Hash()]
		more := uint64(0)
		if rest > 0 {
			more = missing * spare / rest // at most 2^50
		}
		b.gas[tx.Hash()] += more
		missing, rest = missing-more, rest-spare
	}
	if missing != 0 {
		return fmt.Errorf("%d of %d gas is not shared", missing, b.gasUsed)
	}
	return nil
}

func isTransfer(tx *types.Transaction) bool { return tx.Gas() == txGas }

// fill returns a pool that holds the block's transactions, added in a random
// order. Each sender has the nonce of its first transaction and enough balance.
func (b *realBlock) fill(t *testing.T, seed uint64) *Pool {
	t.Helper()
	nonces := make(map[common.Address]uint64)
	for _, tx := range b.txs {
		from := b.from[tx.Hash()]
		if first, there := nonces[from]; !there || tx.Nonce() < first {
			nonces[from] = tx.Nonce()
		}
	}
	cfg := DefaultConfig(b.chainID)
	cfg.AcceptBlobs, cfg.AcceptUnprotected = true, true
	cfg.BlockGasLimit, cfg.MaxTxGas = b.gasLimit, b.gasLimit
	if !strings.HasPrefix(b.name, "electra") {
		cfg.Fork = Shanghai
	}
	cfg.MaxTxSize = 128 * 1024
	cfg.MaxBytes = 1 << 30
	cfg.MaxPerSender = len(b.txs)
	cfg.MinGasPrice, cfg.SurgeSlope = 0, 0
	p, err := New(cfg, StateFunc(func(who common.Address) (Account, error) {
		return Account{Nonce: nonces[who], Balance: *new(uint256.Int).Lsh(uint256.NewInt(1), 120)}, nil
	}))
	require.NoError(t, err)
	p.Reset(Head{BaseFee: b.baseFee})
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(b.txs)) {
		require.NoError(t, p.Add(b.txs[i]), "%s, transaction %d", b.name, i)
	}
	return p
}

// build builds a block within the gas limit by a session and reports for each
// transaction the gas that it used.
func (b *realBlock) build(t *testing.T, p *Pool) (block []*types.Transaction, gasUsed uint64) {
	t.Helper()
	s := p.Build(context.Background(), Budget{Gas: b.gasLimit})
	for tx := s.Next(); tx != nil; tx = s.Next() {
		used := b.gas[tx.Hash()]
		require.LessOrEqual(t, tx.Gas(), b.gasLimit-gasUsed, "Next returned a transaction that may not start")
		s.Used(used, tx.Size())
		block, gasUsed = append(block, tx), gasUsed+used
	}
	same(t, block, s.Transactions())
	s.Cancel()
	return block, gasUsed
}

// inNonceOrder checks that each sender's transactions have consecutive nonces
// from its first one on.
func (b *realBlock) inNonceOrder(t *testing.T, block []*types.Transaction) {
	t.Helper()
	next := make(map[common.Address]uint64)
	for _, tx := range b.txs { // a block contains them in order
		if _, there := next[b.from[tx.Hash()]]; !there {
			next[b.from[tx.Hash()]] = tx.Nonce()
		}
	}
	for i, tx := range block {
		from := b.from[tx.Hash()]
		require.Equal(t, next[from], tx.Nonce(), "transaction %d of %v", i, from)
		next[from]++
	}
}

// A session rebuilds real blocks from their transactions in any order: one block
// takes at least 98 % of the transactions and of the gas.
func TestReplay(t *testing.T) {
	blocks, err := realBlocks()
	require.NoError(t, err)
	for _, b := range blocks {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(b.name, "/", seed), func(t *testing.T) {
				block, gasUsed := b.build(t, b.fill(t, seed))
				b.inNonceOrder(t, block)
				require.GreaterOrEqual(t, 100*len(block), 98*len(b.txs), "%d of %d transactions", len(block), len(b.txs))
				require.GreaterOrEqual(t, 100*gasUsed, 98*b.gasUsed, "%d of %d gas", gasUsed, b.gasUsed)
				again, _ := b.build(t, b.fill(t, seed))
				same(t, block, again) // equal pools give equal blocks (T3)
			})
		}
	}
}

// A drain takes transactions by their gas limits, which is why sessions exist:
// of a full real block, it takes much less into one block.
func TestReplayByLimits(t *testing.T) {
	blocks, err := realBlocks()
	require.NoError(t, err)
	for _, b := range blocks {
		if b.name != "deneb" { // the only one that is nearly full
			continue
		}
		p := b.fill(t, 0)
		byLimit := uint64(0)
		for _, tx := range drain(p, Budget{Gas: b.gasLimit}).Transactions() {
			byLimit += b.gas[tx.Hash()]
		}
		_, byUse := b.build(t, p)
		t.Logf("%d transactions, %d gas: a drain takes %d gas, a session %d", len(b.txs), b.gasUsed, byLimit, byUse)
		require.Less(t, 100*byLimit, 90*byUse)
	}
}
