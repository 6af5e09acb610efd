package chainview_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
)

// traceBlock is a line of the trace.
type traceBlock struct {
	Block struct {
		Header struct {
			Parent          common.Hash `json:"parent"`
			ParentStateRoot common.Hash `json:"parent_state_root"`
			Slot            jamq.Slot   `json:"slot"`
		} `json:"header"`
		Extrinsic struct {
			Guarantees []jsonGuarantee `json:"guarantees"`
			Assurances []jsonAssurance `json:"assurances"`
			Disputes   struct {
				Verdicts []json.RawMessage `json:"verdicts"`
			} `json:"disputes"`
		} `json:"extrinsic"`
	} `json:"block"`
	Pre, Post struct {
		Chapters map[string]hexutil.Bytes `json:"chapters"`
	}
}

func readTrace(t *testing.T) []traceBlock {
	t.Helper()
	f, err := os.Open(filepath.Join(vectors(t), "trace-storage_light.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var out []traceBlock
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var b traceBlock
		require.NoError(t, json.Unmarshal(lines.Bytes(), &b))
		require.Empty(t, b.Block.Extrinsic.Disputes.Verdicts, "no verdict to look up")
		out = append(out, b)
	}
	require.NoError(t, lines.Err())
	return out
}

// TestVectorsTrace feeds the view only the headers, guarantees and assurances
// of 100 blocks of a real chain. After each block the view has the chain's
// recent history, cores, ready queue and accumulated packages. Each real
// guarantee is reportable before it is reported. A package with the same
// context that is never reported dies exactly when D2 and D3 require it.
func TestVectorsTrace(t *testing.T) {
	spec := jamq.Tiny()
	spec.MaxLookupAnchorAge = 14_400 // as this chain was built
	trace := readTrace(t)
	require.Len(t, trace, 100)
	genesis := decodeState(t, &spec, trace[0].Pre.Chapters)
	v, err := chainview.NewAt(&spec, jamq.Block{Hash: genesis.Recent[len(genesis.Recent)-1].Hash}, genesis)
	require.NoError(t, err)

	ghosts := newGhosts(trace)
	ghosts.appear(t, v)
	guarantees, accumulated := 0, 0
	for i := range trace {
		line := &trace[i]
		want := decodeState(t, &spec, line.Post.Chapters)
		b := jamq.Block{
			Hash: want.Recent[len(want.Recent)-1].Hash, Parent: jamq.HeaderHash(line.Block.Header.Parent),
			ParentStateRoot: line.Block.Header.ParentStateRoot, Slot: line.Block.Header.Slot,
			Available: available(&spec, line.Block.Extrinsic.Assurances),
		}
		var candidates []chainview.Candidate
		for _, g := range line.Block.Extrinsic.Guarantees {
			b.Reported = append(b.Reported, g.Report.block())
			candidates = append(candidates, g.candidate())
		}
		require.NoError(t, v.Reportable(b.Slot, b.Available, candidates), "block %d", i)
		for _, c := range candidates { // alive until it is reported
			require.Equal(t, anchor.Alive, status(t, v, c.Package).Dead)
			guarantees++
		}
		require.NoError(t, v.ImportBest(&b, b.Hash))

		have := v.State()
		requireRecent(t, fmt.Sprintf("block %d", i), want.Recent, have.Recent)
		require.Equal(t, want.Cores, have.Cores, "block %d", i)
		want, have = canonical(want), canonical(have)
		require.Equal(t, want.Ready, have.Ready, "block %d", i)
		tail := len(want.Accumulated) - len(have.Accumulated)
		require.Equal(t, want.Accumulated[tail:], have.Accumulated, "block %d", i)
		for _, pkg := range want.Accumulated[len(want.Accumulated)-1] {
			require.Equal(t, b.Hash, status(t, v, pkg).Accumulated.Hash)
			accumulated++
		}
		ghosts.appear(t, v)
		ghosts.check(t, &spec, v)
	}
	t.Logf("%d blocks, %d guarantees, %d accumulated", len(trace), guarantees, accumulated)
	require.Positive(t, guarantees)
	require.Positive(t, accumulated)
}

// ghosts are unreported packages with the contexts of real ones.
type ghosts struct {
	byAnchor map[jamq.HeaderHash][]*jsonReport
	alive    map[jamq.PackageHash]ghost
	dead     int
}

type ghost struct {
	anchor anchor.Point
	lookup jamq.Slot
}

func newGhosts(trace []traceBlock) *ghosts {
	g := &ghosts{byAnchor: make(map[jamq.HeaderHash][]*jsonReport), alive: make(map[jamq.PackageHash]ghost)}
	for i := range trace {
		for k := range trace[i].Block.Extrinsic.Guarantees {
			r := &trace[i].Block.Extrinsic.Guarantees[k].Report
			at := jamq.HeaderHash(r.Context.Anchor)
			g.byAnchor[at] = append(g.byAnchor[at], r)
		}
	}
	return g
}

// appear watches the real packages anchored to the best block, and a ghost of each.
func (g *ghosts) appear(t *testing.T, v *chainview.View) {
	t.Helper()
	best := v.Best()
	for _, r := range g.byAnchor[best.Hash] {
		p := chainview.Package{Anchor: best.Hash, LookupAnchorSlot: r.Context.LookupSlot, Prerequisites: r.needs()}
		watch(t, v, jamq.PackageHash(r.Spec.Hash), p)
		name := jamq.PackageHash(r.Spec.Hash)
		name[0] ^= 0xff
		watch(t, v, name, chainview.Package{Anchor: best.Hash, LookupAnchorSlot: r.Context.LookupSlot})
		g.alive[name] = ghost{best, r.Context.LookupSlot}
	}
}

func (g *ghosts) check(t *testing.T, spec *jamq.ChainSpec, v *chainview.View) {
	t.Helper()
	best := v.Best()
	for name, ghost := range g.alive {
		want := anchor.Alive
		if best.Height >= ghost.anchor.Height+8 {
			want = anchor.AnchorExpired
		} else if best.Slot >= ghost.lookup+spec.MaxLookupAnchorAge {
			want = anchor.LookupExpired
		}
		s := status(t, v, name)
		require.Equal(t, want, s.Dead)
		if want != anchor.Alive {
			require.Equal(t, best, s.DeadSince)
			delete(g.alive, name)
			g.dead++
		}
	}
}

// decodeState reads the state chapters C(3), C(10), C(14) and C(15) as a real chain encodes them.
func decodeState(t *testing.T, spec *jamq.ChainSpec, chapters map[string]hexutil.Bytes) chainview.State {
	t.Helper()
	var s chainview.State
	r := &chapter{t: t, b: chapters["C3"]}
	for range r.natural() {
		b := chainview.RecentBlock{Hash: jamq.HeaderHash(r.hash())}
		r.hash() // the peak of the accumulation-output log, which blocks do not show
		b.StateRoot = r.hash()
		for range r.natural() {
			b.Reported = append(b.Reported, chainview.ReportedPackage{Package: jamq.PackageHash(r.hash()), SegmentRoot: r.hash()})
		}
		s.Recent = append(s.Recent, b)
	}
	r = &chapter{t: t, b: chapters["C10"]}
	for range spec.Cores {
		var c chainview.CoreReport
		if r.take(1)[0] == 1 {
			c = r.report()
			c.Since = jamq.Slot(binary.LittleEndian.Uint32(r.take(4)))
		}
		s.Cores = append(s.Cores, c)
	}
	r.done()
	slot := jamq.Slot(binary.LittleEndian.Uint32(chapters["C11"]))
	byPlace := make([][]chainview.ReadyReport, spec.EpochLength)
	r = &chapter{t: t, b: chapters["C14"]}
	for place := range byPlace {
		for range r.natural() {
			e := chainview.ReadyReport{Package: r.report().Package}
			for range r.natural() {
				e.Unmet = append(e.Unmet, jamq.PackageHash(r.hash()))
			}
			byPlace[place] = append(byPlace[place], e)
		}
	}
	r.done()
	for back := min(spec.EpochLength, slot+1); back > 0; back-- {
		since := slot - (back - 1)
		for _, e := range byPlace[since%spec.EpochLength] {
			e.Since = since
			s.Ready = append(s.Ready, e)
		}
	}
	r = &chapter{t: t, b: chapters["C15"]}
	for range spec.EpochLength {
		var list []jamq.PackageHash
		for range r.natural() {
			list = append(list, jamq.PackageHash(r.hash()))
		}
		s.Accumulated = append(s.Accumulated, list)
	}
	r.done()
	return s
}

// chapter reads an encoded part of a state.
type chapter struct {
	t *testing.T
	b []byte
}

func (c *chapter) take(n int) []byte {
	c.t.Helper()
	require.LessOrEqual(c.t, n, len(c.b))
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *chapter) hash() common.Hash { return common.Hash(c.take(32)) }
func (c *chapter) done()             { require.Empty(c.t, c.b) }

// natural reads a number of variable length (GP C.5).
func (c *chapter) natural() uint64 {
	first := c.take(1)[0]
	extra := 0
	for extra < 8 && first&(0x80>>extra) != 0 {
		extra++
	}
	low := make([]byte, 8)
	copy(low, c.take(extra))
	high := uint64(0)
	if extra < 8 {
		high = uint64(first&(0x7f>>extra)) << (8 * extra)
	}
	return binary.LittleEndian.Uint64(low) + high
}

// report reads a work report (GP C.27).
func (c *chapter) report() chainview.CoreReport {
	var r chainview.CoreReport
	r.Package = jamq.PackageHash(c.hash())
	c.take(4) // length
	c.hash()  // erasure root
	r.SegmentRoot = c.hash()
	c.take(2)        // exports
	c.take(4*32 + 4) // anchor, its two roots, lookup anchor and slot
	for range c.natural() {
		r.Needs = append(r.Needs, jamq.PackageHash(c.hash()))
	}
	c.natural()              // core
	c.hash()                 // authorizer
	c.natural()              // gas
	c.take(int(c.natural())) // trace
	for range c.natural() {
		r.Needs = append(r.Needs, jamq.PackageHash(c.hash()))
		c.hash()
	}
	for range c.natural() {
		c.take(4 + 32 + 32 + 8) // service, code, payload, gas
		if c.take(1)[0] == 0 {
			c.take(int(c.natural()))
		}
		for range 5 {
			c.natural() // gas used by refine
		}
	}
	return r
}
