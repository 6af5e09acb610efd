package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/statedb/ubt"
)

// stateScale is the size of the workloads of statedb.
type stateScale struct {
	leaves  int
	copied  int // of the tree that go-ethereum copies
	update  int // the smaller batch; the greater ones are ten times that
	batches int // of each size
	gets    int
	views   int
	proofs  []int // keys
	sends   int   // transfers
	rounds  int
}

var (
	fullStates  = stateScale{1_000_000, 100_000, 1000, 8, 500_000, 10_000, []int{100, 1000}, 5000, 3}
	quickStates = stateScale{20_000, 5000, 100, 2, 10_000, 1000, []int{100, 1000}, 300, 1}
)

// runStates compares statedb with go-ethereum's binary trie.
func runStates(s stateScale, progress func(string)) []row {
	rows := s.trees(progress)
	progress("heap")
	rows = append(rows, s.heaps()...)
	progress("views")
	debug.FreeOSMemory()
	rows = append(rows, s.snapshots()...)
	progress("proofs")
	debug.FreeOSMemory()
	rows = append(rows, s.multiproofs()...)
	progress("transfers")
	return append(rows, aloneRow("EVM transfer on a view, besides the signature", nanoseconds, s.transfers(), 15_000))
}

// aloneRow returns a row that only jamq has.
func aloneRow(what string, unit unit, value, most float64) row {
	return row{what: what, unit: unit, values: []float64{0, 0, value}, most: most}
}

// trees returns the rows of loading, writing and reading. The trees take turns
// and must have the same roots.
func (s stateScale) trees(progress func(string)) []row {
	rows := []row{
		{what: fmt.Sprintf("load %d leaves, each", s.leaves), unit: nanoseconds, ratio: 5, most: 3000},
		{what: fmt.Sprintf("get of %d", s.leaves), unit: nanoseconds, most: 1200},
		{what: fmt.Sprintf("update %d, each", s.update), unit: nanoseconds, ratio: 1.7, most: 4000},
		{what: fmt.Sprintf("update %d, each", 10*s.update), unit: nanoseconds, ratio: 2, most: 2800},
		{what: fmt.Sprintf("insert %d, each", 10*s.update), unit: nanoseconds, ratio: 7, most: 2600},
		{what: fmt.Sprintf("update %d, each, older roots dropped", 10*s.update), unit: nanoseconds},
	}
	samples := make([][][]float64, len(growers))
	for round := range s.rounds {
		var roots []common.Hash
		for i, grow := range growers {
			if grow == nil {
				samples[i] = append(samples[i], make([]float64, len(rows)))
				continue
			}
			progress(fmt.Sprintf("%s, round %d", growerNames[i], round+1))
			measured := s.alone(i)
			samples[i] = append(samples[i], measured.Values)
			roots = append(roots, measured.Root)
		}
		if roots[0] != roots[1] {
			panic(fmt.Sprintf("roots differ: %s and %s", roots[0], roots[1]))
		}
	}
	for r := range rows {
		for i := range growers {
			var values []float64
			for _, sample := range samples[i] {
				values = append(values, sample[r])
			}
			rows[r].values = append(rows[r].values, median(values))
		}
	}
	return rows
}

// treeFigures holds the figures of one tree, in the order of the rows of trees,
// and its last root.
type treeFigures struct {
	Values []float64
	Root   common.Hash
}

// alone measures one of the growers in a separate process, so that memory of
// the others does not slow it down.
func (s stateScale) alone(grower int) (f treeFigures) {
	if testing.Testing() {
		return s.tree(growers[grower]())
	}
	self, err := os.Executable()
	must(err)
	cmd := exec.Command(self, "-tree", fmt.Sprint(grower), fmt.Sprintf("-quick=%v", s.leaves == quickStates.leaves))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(err)
	must(json.Unmarshal(out, &f))
	return f
}

// tree measures one tree.
func (s stateScale) tree(t tree) treeFigures {
	writes := randomWrites(1, s.leaves, 1)
	var root common.Hash
	load := timed(func() { t.apply(writes) })
	reads := someOf(writes, s.gets, 99)
	get := timed(func() {
		for i := range reads {
			if !t.get(reads[i].Key) {
				panic("a key is missing")
			}
		}
	})
	batches := func(n int, batch func(round int) []ubt.Write) float64 {
		var spent []float64
		for round := range s.batches {
			b := batch(round)
			spent = append(spent, per(timed(func() { root = t.apply(b) }), n))
		}
		return median(spent)
	}
	seed := 0 // new keys for each batch
	update := func(n int) float64 {
		return batches(n, func(int) []ubt.Write {
			seed++
			return someOf(writes, n, seed)
		})
	}
	values := []float64{per(load, len(writes)), per(get, len(reads)), update(s.update), update(10 * s.update)}
	insert := batches(10*s.update, func(round int) []ubt.Write { return randomWrites(byte(2+round), 10*s.update, 1) })
	t.forget()
	return treeFigures{append(values, insert, update(10*s.update)), root}
}

// heaps returns the rows of memory use.
func (s stateScale) heaps() []row {
	perLeaf := func(grow func() tree, perStem int) float64 {
		writes := randomWrites(1, s.leaves, perStem)
		t := grow()
		before := heapInUse()
		t.apply(writes)
		after := heapInUse()
		runtime.KeepAlive(t)
		runtime.KeepAlive(writes)
		return (float64(after) - float64(before)) / float64(s.leaves)
	}
	var rows []row
	for perStem, most := range map[int]float64{1: 320, 4: 110} {
		rows = append(rows, row{what: fmt.Sprintf("heap per leaf, %d to a stem", perStem), unit: bytes, most: most,
			values: []float64{perLeaf(growers[0], perStem), 0, perLeaf(growers[2], perStem)}})
	}
	slices.SortFunc(rows, func(a, b row) int { return -int(a.most - b.most) })
	writes := randomWrites(1, s.leaves, 1)
	t := new(jamqTree)
	t.apply(writes)
	before := heapInUse()
	for round := range s.batches {
		t.apply(someOf(writes, s.update, round))
	}
	block := (float64(heapInUse()) - float64(before)) / float64(s.batches)
	runtime.KeepAlive(t)
	runtime.KeepAlive(writes)
	return append(rows, aloneRow(fmt.Sprintf("heap per retained block of %d writes", s.update), bytes, block, 2_300*float64(s.update)))
}

// snapshots returns the rows of copies: a deep copy of go-ethereum's trie, and
// a copy of a view.
func (s stateScale) snapshots() []row {
	theirs := growers[0]().(*gethTree)
	theirs.apply(randomWrites(1, s.copied, 1))
	before := heapInUse()
	began := time.Now()
	copied := theirs.trie.Copy()
	took := time.Since(began)
	size := float64(heapInUse()) - float64(before)
	runtime.KeepAlive(copied)
	runtime.KeepAlive(theirs)

	view, err := statedb.NewStore().View(statedb.EmptyRoot)
	must(err)
	for i := range byte(100) { // something is staged and read
		view.SetStorage(common.Address{i}, common.Hash{}, common.Hash{1})
		view.Storage(common.Address{i}, common.Hash{1})
	}
	live := make([]*statedb.View, s.views)
	before = heapInUse()
	ours := timed(func() {
		for i := range live {
			live[i] = view.Copy()
		}
	})
	total := float64(heapInUse()) - float64(before)
	runtime.KeepAlive(live)
	return []row{
		{what: fmt.Sprintf("snapshot (geth: of %d leaves)", s.copied), unit: nanoseconds, most: 200, values: []float64{float64(took.Nanoseconds()), 0, per(ours, s.views)}},
		{what: "  memory of one", unit: bytes, most: 512, values: []float64{size, 0, total / float64(s.views)}},
		aloneRow(fmt.Sprintf("  memory of %d views", s.views), bytes, total, 1000*float64(s.views)),
	}
}

// multiproofs returns the rows of proofs of keys that are read, and of the same
// keys written.
func (s stateScale) multiproofs() (rows []row) {
	wanted := map[int][3]float64{100: {200_000, 400_000, 46_000}, 1000: {2e6, 3.5e6, 345_000}}
	writes := randomWrites(1, s.leaves, 1)
	t := new(jamqTree)
	t.apply(writes)
	for _, n := range s.proofs {
		changes := someOf(writes, n, 7)
		slices.SortFunc(changes, func(a, b ubt.Write) int { return a.Key.Compare(b.Key) })
		reads, sets := make([]ubt.Use, n), make([]ubt.Use, n)
		for i := range changes {
			reads[i].Key, sets[i].Key, sets[i].Sets = changes[i].Key, changes[i].Key, true
		}
		var proof *ubt.Proof
		build := s.repeated(func() {
			var err error
			proof, err = t.Prove(&sha, reads)
			must(err)
		})
		open := func(uses []ubt.Use) ubt.Tree {
			part, err := ubt.Open(&sha, proof, uses)
			must(err)
			if part.Root() != t.Root() {
				panic("another root")
			}
			return part
		}
		verify := s.repeated(func() { open(reads) })
		after := s.repeated(func() {
			_, err := open(sets).Apply(&sha, changes)
			must(err)
		})
		what := fmt.Sprintf("multiproof of %d keys: ", n)
		rows = append(rows,
			aloneRow(what+"build", milliseconds, build, wanted[n][0]),
			aloneRow(what+"verify", milliseconds, verify, wanted[n][1]),
			aloneRow(what+"verify, and the root after writing all", milliseconds, after, 0),
			aloneRow(what+"size", bytes, float64(proof.Size()), wanted[n][2]))
	}
	return rows
}

// repeated returns the median duration of a call in nanoseconds. It collects
// garbage first, because all calls together take less time than one collection
// of the large tree.
func (s stateScale) repeated(f func()) float64 {
	runtime.GC()
	var values []float64
	for range 30 * s.rounds {
		began := time.Now()
		f()
		values = append(values, float64(time.Since(began).Nanoseconds()))
	}
	return median(values)
}

// transfers returns the duration of one transfer in nanoseconds. It executes
// transfers on a view, and includes their shares of Finish and of the keys of
// the witness. The senders are recovered before.
func (s stateScale) transfers() float64 {
	people := newPeople(s.sends)
	store := statedb.NewStore()
	view, err := store.View(statedb.EmptyRoot)
	must(err)
	for _, a := range people.addresses {
		must(view.SetAccount(a, statedb.Account{Balance: wealth, CodeHash: types.EmptyCodeHash}))
	}
	root, err := view.Commit()
	must(err)
	txs := people.sign(once(0, s.sends, 1))
	for _, tx := range txs {
		sender(tx)
	}
	var values []float64
	for range s.rounds {
		view, err := store.View(root)
		must(err)
		header := &types.Header{Number: big.NewInt(1), Time: 1, GasLimit: 1 << 50, BaseFee: big.NewInt(1), Coinbase: common.Address{0xcb}}
		values = append(values, per(timed(func() {
			block, err := evm.NewBlock(view, evm.ChainConfig(chainID), header, func(uint64) common.Hash { return common.Hash{} })
			must(err)
			for _, tx := range txs {
				_, err := block.Apply(tx)
				must(err)
			}
			must(block.Finish())
			view.Entries()
		}), len(txs)))
	}
	return median(values)
}
