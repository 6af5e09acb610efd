package chainview_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// vectors returns the folder of real JAM data, or skips the test.
func vectors(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("JAMQ_VECTORS")
	if dir == "" {
		t.Skip("JAMQ_VECTORS is not set: no real JAM data to test with")
	}
	return filepath.Join(dir, "jam")
}

// The JSON of the public vectors, as far as the life of packages goes.
type (
	jsonReport struct {
		Spec struct {
			Hash        common.Hash `json:"hash"`
			ExportsRoot common.Hash `json:"exports_root"`
		} `json:"package_spec"`
		Context struct {
			Anchor        common.Hash   `json:"anchor"`
			StateRoot     common.Hash   `json:"state_root"`
			BeefyRoot     common.Hash   `json:"beefy_root"`
			LookupAnchor  common.Hash   `json:"lookup_anchor"`
			LookupSlot    jamq.Slot     `json:"lookup_anchor_slot"`
			Prerequisites []common.Hash `json:"prerequisites"`
		} `json:"context"`
		Core    jamq.CoreIndex `json:"core_index"`
		Lookups []struct {
			Package     common.Hash `json:"work_package_hash"`
			SegmentRoot common.Hash `json:"segment_tree_root"`
		} `json:"segment_root_lookup"`
	}
	jsonGuarantee struct {
		Report jsonReport `json:"report"`
		Slot   jamq.Slot  `json:"slot"`
	}
	jsonAssurance struct {
		Bitfield hexutil.Bytes `json:"bitfield"`
	}
	jsonAssignment struct {
		Report  jsonReport `json:"report"`
		Timeout jamq.Slot  `json:"timeout"`
	}
	jsonRecent struct {
		History []struct {
			Hash      common.Hash `json:"header_hash"`
			StateRoot common.Hash `json:"state_root"`
			Reported  []struct {
				Hash        common.Hash `json:"hash"`
				ExportsRoot common.Hash `json:"exports_root"`
			} `json:"reported"`
		} `json:"history"`
	}
	jsonReady struct {
		Report       jsonReport    `json:"report"`
		Dependencies []common.Hash `json:"dependencies"`
	}
)

// needs returns what must be accumulated before the report's package.
func (r *jsonReport) needs() []jamq.PackageHash {
	var out []jamq.PackageHash
	for _, p := range r.Context.Prerequisites {
		out = append(out, jamq.PackageHash(p))
	}
	for _, l := range r.Lookups {
		out = append(out, jamq.PackageHash(l.Package))
	}
	return out
}

func (r *jsonReport) block() jamq.Report {
	return jamq.Report{
		Package: jamq.PackageHash(r.Spec.Hash), SegmentRoot: r.Spec.ExportsRoot, Core: r.Core,
		Anchor: jamq.HeaderHash(r.Context.Anchor), Prerequisites: r.needs(),
	}
}

func (r *jsonReport) onCore(since jamq.Slot) chainview.CoreReport {
	return chainview.CoreReport{Package: jamq.PackageHash(r.Spec.Hash), SegmentRoot: r.Spec.ExportsRoot, Needs: r.needs(), Since: since}
}

func (g *jsonGuarantee) candidate() chainview.Candidate {
	r := &g.Report
	c := chainview.Candidate{
		Package: jamq.PackageHash(r.Spec.Hash), SegmentRoot: r.Spec.ExportsRoot, Core: r.Core, GuaranteeSlot: g.Slot,
		Context: jamq.RefineContext{
			Anchor: jamq.HeaderHash(r.Context.Anchor), StateRoot: r.Context.StateRoot, BeefyRoot: r.Context.BeefyRoot,
			LookupAnchor: jamq.HeaderHash(r.Context.LookupAnchor), LookupAnchorSlot: r.Context.LookupSlot,
		},
	}
	for _, p := range r.Context.Prerequisites {
		c.Context.Prerequisites = append(c.Context.Prerequisites, jamq.PackageHash(p))
	}
	for _, l := range r.Lookups {
		c.Lookups = append(c.Lookups, chainview.ReportedPackage{Package: jamq.PackageHash(l.Package), SegmentRoot: l.SegmentRoot})
	}
	return c
}

func (j *jsonRecent) blocks() []chainview.RecentBlock {
	var out []chainview.RecentBlock
	for _, h := range j.History {
		b := chainview.RecentBlock{Hash: jamq.HeaderHash(h.Hash), StateRoot: h.StateRoot}
		for _, r := range h.Reported {
			b.Reported = append(b.Reported, chainview.ReportedPackage{Package: jamq.PackageHash(r.Hash), SegmentRoot: r.ExportsRoot})
		}
		out = append(out, b)
	}
	return out
}

func available(spec *jamq.ChainSpec, assurances []jsonAssurance) []jamq.CoreIndex {
	var fields [][]byte
	for _, a := range assurances {
		fields = append(fields, a.Bitfield)
	}
	return jamq.AvailableCores(spec.Validators, jamq.CountAssurances(spec.Cores, fields))
}

// readCases reads all cases of a folder.
func readCases[C any](t *testing.T, folder string) map[string]C {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors(t), folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	out := make(map[string]C)
	for _, f := range files {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		var c C
		require.NoError(t, json.Unmarshal(raw, &c), f)
		out[filepath.Base(f)] = c
	}
	return out
}

type reportsCase struct {
	Input struct {
		Guarantees []jsonGuarantee `json:"guarantees"`
		Slot       jamq.Slot       `json:"slot"`
		Known      []common.Hash   `json:"known_packages"`
	} `json:"input"`
	Pre struct {
		Cores  []*jsonAssignment `json:"avail_assignments"`
		Recent jsonRecent        `json:"recent_blocks"`
	} `json:"pre_state"`
	Output struct {
		Err string `json:"err"`
	} `json:"output"`
}

// reportErrors has the rule that decides each report case of the vectors. A case with nil depends
// on facts that blocks do not show, or that do not affect the life of a package.
var reportErrors = map[string]error{
	"anchor_not_recent":           chainview.ErrAnchorNotRecent,
	"bad_state_root":              chainview.ErrAnchorStateRoot,
	"bad_core_index":              jamq.ErrInvalidBlock,
	"core_engaged":                chainview.ErrCoreEngaged,
	"out_of_order_guarantee":      chainview.ErrCoreEngaged, // two reports on one core
	"dependency_missing":          chainview.ErrPrerequisite,
	"duplicate_package":           chainview.ErrReportedBefore,
	"future_report_slot":          chainview.ErrFutureGuarantee,
	"report_epoch_before_last":    chainview.ErrOldGuarantee,
	"segment_root_lookup_invalid": chainview.ErrSegmentRoot,
	"too_many_dependencies":       chainview.ErrTooManyDependencies,

	"bad_beefy_mmr_root": nil,
	// Credentials.
	"bad_signature":                   nil,
	"bad_validator_index":             nil,
	"banned_validator":                nil,
	"insufficient_guarantees":         nil,
	"not_sorted_or_unique_guarantors": nil,
	"wrong_assignment":                nil,
	// The form of the block and of the report, gas, services, authorizers.
	"missing_work_results":     nil,
	"work_report_too_big":      nil,
	"work_report_gas_too_high": nil,
	"service_item_gas_too_low": nil,
	"bad_code_hash":            nil,
	"bad_service_id":           nil,
	"core_unauthorized":        nil,
}

func TestVectorsReports(t *testing.T) {
	spec := jamq.Tiny()
	judged, outside := 0, 0
	for name, c := range readCases[reportsCase](t, "reports") {
		state := chainview.State{Recent: c.Pre.Recent.blocks(), Cores: make([]chainview.CoreReport, spec.Cores)}
		var known []jamq.PackageHash
		for _, k := range c.Input.Known {
			known = append(known, jamq.PackageHash(k))
		}
		state.Accumulated = [][]jamq.PackageHash{known}
		for core, a := range c.Pre.Cores {
			if a != nil {
				state.Cores[core] = a.Report.onCore(a.Timeout)
			}
		}
		v, err := chainview.NewAt(&spec, jamq.Block{Hash: state.Recent[len(state.Recent)-1].Hash, Slot: c.Input.Slot - 1}, state)
		require.NoError(t, err, name)
		var candidates []chainview.Candidate
		for i := range c.Input.Guarantees {
			candidates = append(candidates, c.Input.Guarantees[i].candidate())
		}
		err = v.Reportable(c.Input.Slot, nil, candidates)
		want, listed := reportErrors[c.Output.Err]
		require.True(t, listed || c.Output.Err == "", "%s: %s", name, c.Output.Err)
		if c.Output.Err != "" && want == nil {
			outside++
			require.NoError(t, err, "%s: our rules have nothing against %s", name, c.Output.Err)
			continue
		}
		judged++
		require.True(t, errors.Is(err, want), "%s: %v, want %v", name, err, want)
	}
	t.Logf("%d cases judged alike, %d outside of the rules", judged, outside)
}

type assurancesCase struct {
	Input struct {
		Assurances []jsonAssurance `json:"assurances"`
		Slot       jamq.Slot       `json:"slot"`
	} `json:"input"`
	Pre, Post assurancesState
	Output    struct {
		OK *struct {
			Reported []jsonReport `json:"reported"`
		} `json:"ok"`
		Err string `json:"err"`
	} `json:"output"`
}

type assurancesState struct {
	Cores []*jsonAssignment `json:"avail_assignments"`
}

func (c *assurancesCase) UnmarshalJSON(raw []byte) error {
	type plain assurancesCase
	return json.Unmarshal(raw, &struct {
		*plain
		Pre  *assurancesState `json:"pre_state"`
		Post *assurancesState `json:"post_state"`
	}{(*plain)(c), &c.Pre, &c.Post})
}

func (s *assurancesState) cores(spec *jamq.ChainSpec) []chainview.CoreReport {
	out := make([]chainview.CoreReport, spec.Cores)
	for core, a := range s.Cores {
		if a != nil {
			out[core] = a.Report.onCore(a.Timeout)
		}
	}
	return out
}

func TestVectorsAssurances(t *testing.T) {
	spec := jamq.Tiny()
	outside := map[string]bool{ // credentials and the form of the block
		"core_not_engaged": true, "bad_attestation_parent": true, "bad_signature": true,
		"bad_validator_index": true, "not_sorted_or_unique_assurers": true,
	}
	judged := 0
	for name, c := range readCases[assurancesCase](t, "assurances") {
		if c.Output.OK == nil {
			require.True(t, outside[c.Output.Err], "%s: %s", name, c.Output.Err)
			continue
		}
		judged++
		v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 1), Slot: c.Input.Slot - 1}, chainview.State{Cores: c.Pre.cores(&spec)})
		require.NoError(t, err)
		for _, a := range c.Pre.Cores {
			if a != nil {
				watch(t, v, jamq.PackageHash(a.Report.Spec.Hash), chainview.Package{Anchor: header('a', 1), LookupAnchorSlot: c.Input.Slot})
			}
		}
		b := jamq.Block{Hash: header('a', 2), Parent: header('a', 1), Slot: c.Input.Slot, Available: available(&spec, c.Input.Assurances)}
		require.NoError(t, v.ImportBest(&b, b.Hash))
		require.Equal(t, c.Post.cores(&spec), v.State().Cores, name)
		for _, r := range c.Output.OK.Reported {
			require.Equal(t, b.Hash, status(t, v, jamq.PackageHash(r.Spec.Hash)).Available.Hash, name)
		}
	}
	t.Logf("%d cases alike", judged)
}

type historyCase struct {
	Input struct {
		Hash            common.Hash `json:"header_hash"`
		ParentStateRoot common.Hash `json:"parent_state_root"`
		Packages        []struct {
			Hash        common.Hash `json:"hash"`
			ExportsRoot common.Hash `json:"exports_root"`
		} `json:"work_packages"`
	} `json:"input"`
	Pre struct {
		Beta jsonRecent `json:"beta"`
	} `json:"pre_state"`
	Post struct {
		Beta jsonRecent `json:"beta"`
	} `json:"post_state"`
}

func TestVectorsHistory(t *testing.T) {
	spec := jamq.Tiny()
	spec.Cores = 16 // the cases report more at once than two cores hold
	for name, c := range readCases[historyCase](t, "history") {
		recent := c.Pre.Beta.blocks()
		root := jamq.Block{Hash: header('a', 0)}
		if len(recent) > 0 {
			root.Hash = recent[len(recent)-1].Hash
		}
		v, err := chainview.NewAt(&spec, root, chainview.State{Recent: recent})
		require.NoError(t, err)
		b := jamq.Block{Hash: jamq.HeaderHash(c.Input.Hash), Parent: root.Hash, ParentStateRoot: c.Input.ParentStateRoot, Slot: 1}
		for core, p := range c.Input.Packages {
			b.Reported = append(b.Reported, jamq.Report{Package: jamq.PackageHash(p.Hash), SegmentRoot: p.ExportsRoot, Core: jamq.CoreIndex(core)})
		}
		require.NoError(t, v.ImportBest(&b, b.Hash))
		have := v.State().Recent
		if len(recent) == 0 {
			have = have[1:] // without the root, which only stands for "nothing"
		}
		requireRecent(t, name, c.Post.Beta.blocks(), have)
	}
}

// requireRecent compares recent histories except for the accumulation log,
// which blocks do not show.
func requireRecent(t *testing.T, name string, want, have []chainview.RecentBlock) {
	t.Helper()
	require.Len(t, have, len(want), name)
	byPackage := func(a, b chainview.ReportedPackage) int { return a.Package.Compare(b.Package) }
	for i := range want {
		w, h := want[i], have[i]
		h.Slot = 0
		slices.SortFunc(w.Reported, byPackage)
		slices.SortFunc(h.Reported, byPackage)
		require.Equal(t, w, h, "%s: block %d", name, i)
	}
}

type accumulateCase struct {
	Input struct {
		Slot    jamq.Slot    `json:"slot"`
		Reports []jsonReport `json:"reports"`
	} `json:"input"`
	Pre  accumulateState `json:"pre_state"`
	Post accumulateState `json:"post_state"`
}

type accumulateState struct {
	Slot        jamq.Slot       `json:"slot"`
	Ready       [][]jsonReady   `json:"ready_queue"`
	Accumulated [][]common.Hash `json:"accumulated"`
}

// state turns the queue by places of the epoch into one by slots.
func (s *accumulateState) state(spec *jamq.ChainSpec) chainview.State {
	var out chainview.State
	for back := spec.EpochLength; back > 0; back-- { // the oldest first
		if s.Slot < back-1 {
			continue
		}
		since := s.Slot - (back - 1)
		for _, r := range s.Ready[since%spec.EpochLength] {
			e := chainview.ReadyReport{Package: jamq.PackageHash(r.Report.Spec.Hash), Since: since}
			for _, d := range r.Dependencies {
				e.Unmet = append(e.Unmet, jamq.PackageHash(d))
			}
			out.Ready = append(out.Ready, e)
		}
	}
	for _, block := range s.Accumulated {
		var list []jamq.PackageHash
		for _, h := range block {
			list = append(list, jamq.PackageHash(h))
		}
		out.Accumulated = append(out.Accumulated, list)
	}
	return out
}

// canonical sorts what is a set.
func canonical(s chainview.State) chainview.State {
	for i := range s.Ready {
		s.Ready[i].Unmet = append([]jamq.PackageHash{}, s.Ready[i].Unmet...)
		slices.SortFunc(s.Ready[i].Unmet, jamq.PackageHash.Compare)
	}
	s.Ready = append([]chainview.ReadyReport{}, s.Ready...)
	for i := range s.Accumulated {
		s.Accumulated[i] = append([]jamq.PackageHash{}, s.Accumulated[i]...)
		slices.SortFunc(s.Accumulated[i], jamq.PackageHash.Compare)
	}
	return s
}

func TestVectorsAccumulate(t *testing.T) {
	for name, c := range readCases[accumulateCase](t, "accumulate") {
		spec := jamq.Tiny()
		spec.Cores = max(spec.Cores, len(c.Input.Reports))
		state := c.Pre.state(&spec)
		state.Cores = make([]chainview.CoreReport, spec.Cores)
		b := jamq.Block{Hash: header('a', 2), Parent: header('a', 1), Slot: c.Input.Slot}
		for i, r := range c.Input.Reports {
			state.Cores[i] = r.onCore(c.Input.Slot)
			b.Available = append(b.Available, jamq.CoreIndex(i))
		}
		v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 1), Slot: c.Pre.Slot}, state)
		require.NoError(t, err, name)
		require.NoError(t, v.ImportBest(&b, b.Hash), name)
		want, have := canonical(c.Post.state(&spec)), canonical(v.State())
		require.Equal(t, want.Ready, have.Ready, name)
		require.Equal(t, want.Accumulated, have.Accumulated, name)
	}
}
