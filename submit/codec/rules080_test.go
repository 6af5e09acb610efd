package codec_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// parameters080 are the constants of a chain of Gray Paper 0.8.0 with four cores, as a node returns
// them by JIP-2: they have no number of validators.
const parameters080 = `{"core_count":4,"epoch_period":12,"max_accumulate_gas":10000000,"max_refine_gas":1000000000,
	"block_gas_limit":20000000,"recent_block_count":8,"max_work_items":16,"max_dependencies":8,"max_lookup_anchor_age":14400,"auth_window":8,
	"slot_period_sec":6,"auth_queue_len":80,"rotation_period":4,"max_extrinsics":128,"availability_timeout":5,"max_input":13791360}`

// chain080 is a chain of Gray Paper 0.8.0 whose epochs have sets of 6, 9 or 12 validators. It makes
// blocks that the rules admit, and derives the fate of each package from the blocks themselves: the
// comments name the sections. It shares no code with package chainview.
type chain080 struct {
	*testing.T
	r    *rand.Rand
	spec jamq.ChainSpec
	c    *codec.Codec

	head          codec.Header
	hash          jamq.HeaderHash
	height        int
	kappa, gammaP int // sizes of the active and of the pending set
	cores         []*on080
	ready         []*fate080
	fates         []*fate080
	tally         map[string]int
}

// on080 is a report on a core.
type on080 struct {
	hash  common.Hash
	fate  *fate080
	since jamq.Slot
}

// fate080 is a package and the heights at which the chain did something with it; 0 is never.
type fate080 struct {
	hash                             jamq.PackageHash
	core                             jamq.CoreIndex
	context                          jamq.RefineContext
	anchor                           int
	reported, available, accumulated int
	since                            jamq.Slot // in the ready queue
	lost                             bool      // removed from its core or from the ready queue
}

func (m *chain080) fate(pkg jamq.PackageHash) *fate080 {
	i := slices.IndexFunc(m.fates, func(f *fate080) bool { return f.hash == pkg })
	return m.fates[i]
}

// send makes a package whose anchor is the head, for one of all cores.
func (m *chain080) send() *fate080 {
	f := &fate080{
		hash: blake2b.Sum256(fmt.Append(nil, "package", len(m.fates))), core: jamq.CoreIndex(m.r.IntN(m.spec.Cores)), anchor: m.height,
		context: jamq.RefineContext{Anchor: m.hash, AnchorSlot: m.head.Slot, LookupAnchorSlot: m.head.Slot, LookupAnchor: m.hash},
	}
	if n := len(m.fates); n > 0 && m.r.IntN(3) == 0 {
		f.context.Prerequisites = []jamq.PackageHash{m.fates[n-1-m.r.IntN(min(n, 4))].hash}
	}
	m.fates = append(m.fates, f)
	return f
}

// reportable applies the rules of 11.4 to a package in the next block.
func (m *chain080) reportable(f *fate080, with []*fate080) bool {
	recent := m.height - m.spec.RecentHistory
	needs := func(pkg jamq.PackageHash) bool {
		p := m.fate(pkg)
		return p.reported > recent && p.reported > 0 || slices.Contains(with, p)
	}
	for _, pkg := range f.context.Prerequisites {
		if !needs(pkg) {
			return false
		}
	}
	return f.reported == 0 && f.anchor > recent && 3*int(f.core) < m.kappa && m.cores[f.core] == nil
}

// next makes the next block and applies it.
func (m *chain080) next() *codec.Block {
	b := &codec.Block{Header: codec.Header{Parent: m.hash, Slot: m.head.Slot + 1}}
	if m.r.IntN(5) == 0 {
		b.Header.Slot += jamq.Slot(m.r.IntN(8))
	}
	m.height++
	kappa, x := m.kappa, &b.Extrinsic
	if b.Header.Slot/m.spec.EpochLength > m.head.Slot/m.spec.EpochLength { // 6.13, 6.27
		mark := &codec.EpochMark{Validators: make([]codec.ValidatorKeys, []int{6, 9, 12}[m.r.IntN(3)])}
		b.Header.Epoch, m.kappa, m.gammaP = mark, m.gammaP, len(mark.Validators)
	}
	m.dispute(x, kappa)
	available := m.assure(x, kappa)
	for core, on := range m.cores { // 11.2.2, the rest
		if on != nil && (b.Header.Slot >= on.since+m.spec.AvailabilityTimeout || kappa != m.kappa) {
			m.lose(core, "cleared or timed out")
			if kappa != m.kappa {
				m.tally["cleared"]++
			}
		}
	}
	m.guarantee(x, b.Header.Slot)
	m.accumulate(available, b.Header.Slot)
	var err error
	b.Header.ExtrinsicHash, err = m.c.ExtrinsicHash(x)
	require.NoError(m, err)
	m.head = b.Header
	m.hash, err = m.c.HeaderHash(&b.Header)
	require.NoError(m, err)
	return b
}

// lose removes the report from a core.
func (m *chain080) lose(core int, why string) {
	m.cores[core].fate.lost = true
	m.cores[core] = nil
	m.tally[why]++
}

// dispute judges some reports (10.2): a third of the votes or none make a verdict that clears the
// core, all of them one that does not.
func (m *chain080) dispute(x *codec.Extrinsics, kappa int) {
	for core, on := range m.cores {
		if on == nil || m.r.IntN(12) > 0 {
			continue
		}
		v := codec.Verdict{Target: on.hash, Votes: make([]codec.Vote, 2*kappa/3+1)}
		valid := []int{0, kappa / 3, len(v.Votes)}[m.r.IntN(3)]
		for i := range v.Votes {
			v.Votes[i] = codec.Vote{Valid: i < valid, Validator: uint16(i)}
		}
		x.Disputes.Verdicts = append(x.Disputes.Verdicts, v)
		if valid < len(v.Votes) {
			m.lose(core, "condemned")
		}
	}
	slices.SortFunc(x.Disputes.Verdicts, func(a, b codec.Verdict) int { return a.Target.Cmp(b.Target) })
}

// assure lets validators assure reports, some of them just too few (11.2.2). It returns the
// packages that become available, by core.
func (m *chain080) assure(x *codec.Extrinsics, kappa int) (available []*fate080) {
	for v := range kappa {
		x.Assurances = append(x.Assurances, codec.Assurance{Anchor: m.hash, Bitfield: []byte{0}, Validator: uint16(v)})
	}
	for core, on := range m.cores {
		if on == nil || m.r.IntN(3) > 0 {
			continue
		}
		votes := 2*kappa/3 + m.r.IntN(2)
		for v := range votes {
			x.Assurances[v].Bitfield[0] |= 1 << core
		}
		if 3*votes > 2*kappa {
			on.fate.available = m.height
			available = append(available, on.fate)
			m.cores[core] = nil
			m.tally["available"]++
		}
	}
	return available
}

// guarantee reports packages on free active cores (11.4, 11.5).
func (m *chain080) guarantee(x *codec.Extrinsics, slot jamq.Slot) {
	var with []*fate080
	for _, f := range m.fates {
		if m.r.IntN(2) == 0 || !m.reportable(f, with) {
			continue
		}
		report := codec.WorkReport{
			Package: codec.PackageSpec{Hash: f.hash, ErasureShards: uint16(m.kappa)}, Context: f.context, Core: f.core,
		}
		raw, err := m.c.Encode(&report)
		require.NoError(m, err)
		m.cores[f.core] = &on080{hash: blake2b.Sum256(raw), fate: f, since: slot}
		f.reported = m.height
		with = append(with, f)
		x.Guarantees = append(x.Guarantees, codec.Guarantee{Report: report, Slot: slot})
	}
	slices.SortFunc(x.Guarantees, func(a, b codec.Guarantee) int { return int(a.Report.Core) - int(b.Report.Core) })
}

// accumulate takes available packages and the ready queue (12.1, 12.2).
func (m *chain080) accumulate(available []*fate080, slot jamq.Slot) {
	for _, f := range available {
		f.since = slot
		m.ready = append(m.ready, f)
	}
	met := func(pkg jamq.PackageHash) bool { return m.fate(pkg).accumulated > 0 }
	for again := true; again; {
		again = false
		for _, f := range m.ready {
			if f.accumulated == 0 && !slices.ContainsFunc(f.context.Prerequisites, func(pkg jamq.PackageHash) bool { return !met(pkg) }) {
				f.accumulated, again = m.height, true
			}
		}
	}
	m.ready = slices.DeleteFunc(m.ready, func(f *fate080) bool {
		if f.accumulated == 0 && slot >= f.since+m.spec.EpochLength {
			f.lost = true
		}
		return f.accumulated > 0 || f.lost
	})
}

// dead reports whether the chain can never accumulate a package.
func (m *chain080) dead(f *fate080) bool {
	expired := m.height - m.spec.RecentHistory
	for _, pkg := range f.context.Prerequisites {
		need := m.fate(pkg)
		if f.accumulated == 0 && (m.dead(need) || f.reported == 0 && need.reported > 0 && need.reported <= expired) {
			return true
		}
	}
	return f.accumulated == 0 && (f.lost || f.reported == 0 && f.anchor <= expired)
}

// TestRules080 plays chains of Gray Paper 0.8.0 of 200 blocks each, whose number of validators
// changes. A view imports the encoded blocks. After each of them it must agree with the model about
// the blocks in which each package was reported, became available and was accumulated, and about
// whether the package is dead.
func TestRules080(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(10) {
		var p jip2.Parameters
		require.NoError(t, json.Unmarshal([]byte(parameters080), &p))
		spec, err := p.Spec("0.8.0")
		require.NoError(t, err)
		c, err := codec.New(codec.V080, spec)
		require.NoError(t, err)
		m := &chain080{
			T: t, r: rand.New(rand.NewPCG(seed, 80)), spec: spec, c: c, hash: jamq.HeaderHash{1},
			kappa: 6, gammaP: 12, cores: make([]*on080, spec.Cores), tally: total,
		}
		view, err := chainview.New(&spec, jamq.Block{Hash: m.hash})
		require.NoError(t, err)
		sizes := codec.SetSizes{Active: m.kappa, Next: m.gammaP}
		for range 200 {
			for range 3 {
				f := m.send()
				_, err := view.Watch(f.hash, chainview.Package{Anchor: f.context.Anchor, LookupAnchorSlot: f.context.LookupAnchorSlot, Prerequisites: f.context.Prerequisites})
				require.NoError(t, err)
			}
			raw, err := c.Encode(m.next())
			require.NoError(t, err)
			b, err := codec.Decode[codec.Block](c, raw)
			require.NoError(t, err)
			before := sizes.Active
			effect, err := c.EffectOf(&b)
			require.NoError(t, err)
			block, after, err := effect.Imported(sizes)
			require.NoError(t, err)
			require.Equal(t, sizes.After(&b.Header), after)
			sizes = after
			same, err := c.ImportedBy(&b, before, sizes.Active)
			require.NoError(t, err)
			require.Equal(t, same, block)
			require.NoError(t, view.ImportBest(&block, block.Hash))
			m.compare(view)
		}
	}
	t.Logf("%v", total)
	for _, what := range []string{"available", "cleared", "condemned", "dead", "accumulated"} {
		require.Greater(t, total[what], 50, what)
	}
}

// compare compares the newest packages, and now and then all of them.
func (m *chain080) compare(view *chainview.View) {
	m.Helper()
	from := max(0, len(m.fates)-100)
	if m.height == 200 {
		from = 0
	}
	for _, f := range m.fates[from:] {
		s, err := view.Status(f.hash)
		require.NoError(m, err)
		have := []uint64{s.Reported.Height, s.Available.Height, s.Accumulated.Height}
		require.Equal(m, []uint64{uint64(f.reported), uint64(f.available), uint64(f.accumulated)}, have, "package %s at height %d", f.hash, m.height)
		require.Equal(m, m.dead(f), s.Dead != anchor.Alive, "package %s at height %d: %v", f.hash, m.height, s.Dead)
		if m.height == 200 && s.Dead != anchor.Alive {
			m.tally["dead"]++
		}
		if m.height == 200 && f.accumulated > 0 {
			m.tally["accumulated"]++
		}
	}
}

// An effect without a codec, and sizes that are not known, are refused.
func TestEffectNeedsTheSizes(t *testing.T) {
	_, _, err := new(codec.Effect).Imported(codec.SetSizes{Active: 6, Next: 6})
	require.ErrorIs(t, err, codec.ErrUnknownSet)
	c, err := codec.New(codec.V080, jamq.Tiny())
	require.NoError(t, err)
	b := codec.Block{}
	_, err = c.EffectOf(&b)
	require.ErrorIs(t, err, codec.ErrExtrinsicHash)
	b.Header.ExtrinsicHash, err = c.ExtrinsicHash(&b.Extrinsic)
	require.NoError(t, err)
	mark := codec.EpochMark{Validators: make([]codec.ValidatorKeys, 6)}
	for name, want := range map[codec.SetSizes]error{{}: codec.ErrUnknownSet, {Active: 6}: codec.ErrUnknownSet, {Active: 7, Next: 6}: codec.ErrUnknownSet, {Active: 6, Next: 3}: nil} {
		b.Header.Epoch = &mark
		e, err := c.EffectOf(&b)
		require.NoError(t, err)
		_, after, err := e.Imported(name)
		require.ErrorIs(t, err, want, "%v", name)
		if err == nil {
			require.Equal(t, codec.SetSizes{Active: 3, Next: 6}, after)
		}
	}
}

// Reports on inactive cores and more than 16 verdicts, culprits or faults are refused.
func TestLimits080(t *testing.T) {
	spec := jamq.Tiny()
	spec.Cores, spec.Validators = 4, 12
	c, err := codec.New(codec.V080, spec)
	require.NoError(t, err)
	older, err := codec.New(codec.V072, spec)
	require.NoError(t, err)
	for core, active := range map[jamq.CoreIndex][]int{1: {6, 8}, 2: {9, 11}, 3: {12, 12}} {
		b := codec.Block{Extrinsic: codec.Extrinsics{Guarantees: codec.Guarantees{{Report: codec.WorkReport{Core: core}}}}}
		b.Header.ExtrinsicHash, err = c.ExtrinsicHash(&b.Extrinsic)
		require.NoError(t, err)
		for _, validators := range active {
			_, err = c.ImportedBy(&b, 12, validators)
			require.NoError(t, err)
		}
		_, err = c.ImportedBy(&b, 12, active[0]-1)
		require.ErrorIs(t, err, jamq.ErrInvalidBlock)
	}
	for name, disputes := range map[string]func(n int) codec.Disputes{
		"verdicts": func(n int) codec.Disputes {
			d := codec.Disputes{Verdicts: make([]codec.Verdict, n)}
			for i := range d.Verdicts {
				d.Verdicts[i].Votes = make([]codec.Vote, 9)
			}
			return d
		},
		"culprits": func(n int) codec.Disputes { return codec.Disputes{Culprits: make([]codec.Culprit, n)} },
		"faults":   func(n int) codec.Disputes { return codec.Disputes{Faults: make([]codec.Fault, n)} },
	} {
		for n, want := range map[int]error{16: nil, 17: codec.ErrTooLarge} {
			b := codec.Block{Extrinsic: codec.Extrinsics{Disputes: disputes(n)}}
			_, err := c.Encode(&b)
			require.ErrorIs(t, err, want, name)
			_, err = older.Encode(&b)
			require.NoError(t, err, name)
		}
	}
}
