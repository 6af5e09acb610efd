package codec_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/submit/codec"
)

func vectors(t *testing.T) string {
	t.Helper()
	return vectorsOf(t, "jam")
}

// vectorsOf returns the folder of one of the sets of vectors.
func vectorsOf(t *testing.T, set string) string {
	t.Helper()
	dir := os.Getenv("JAMQ_VECTORS")
	if dir == "" {
		t.Skip("JAMQ_VECTORS is not set: the public vectors are not here")
	}
	return filepath.Join(dir, set)
}

// checkVector decodes a vector, holds every field of it against the JSON beside it, and encodes it
// to the same bytes.
func checkVector[T any, P interface {
	*T
	codec.Value
}](show func(*T) any) func(*testing.T, *codec.Codec, []byte, []byte) {
	return func(t *testing.T, c *codec.Codec, raw, text []byte) {
		v, err := codec.Decode[T, P](c, raw)
		require.NoError(t, err)
		have, err := json.Marshal(show(&v))
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(have))
		again, err := c.Encode(P(&v))
		require.NoError(t, err)
		require.Equal(t, raw, again)
		for n := range min(len(raw), 500) {
			_, err := codec.Decode[T, P](c, raw[:n])
			require.ErrorIs(t, err, codec.ErrTruncated, "cut to %d bytes", n)
		}
	}
}

// TestVectors goes through every file of the public codec vectors; one that it does not know fails
// it.
func TestVectors(t *testing.T) {
	dir := filepath.Join(vectors(t), "codec")
	checks := map[string]func(*testing.T, *codec.Codec, []byte, []byte){
		"refine_context":       checkVector(func(x *codec.RefineContext) any { return showContext((*jamq.RefineContext)(x)) }),
		"work_item":            checkVector(func(x *codec.WorkItem) any { return showItem(x) }),
		"work_package":         checkVector(func(x *codec.WorkPackage) any { return showPackage(x) }),
		"work_report":          checkVector(func(x *codec.WorkReport) any { return showReport(x) }),
		"work_result_0":        checkVector(func(x *codec.WorkDigest) any { return showDigest(x) }),
		"work_result_1":        checkVector(func(x *codec.WorkDigest) any { return showDigest(x) }),
		"header_0":             checkVector(func(x *codec.Header) any { return showHeader(x) }),
		"header_1":             checkVector(func(x *codec.Header) any { return showHeader(x) }),
		"tickets_extrinsic":    checkVector(func(x *codec.Tickets) any { return showEach(*x, showTicket) }),
		"preimages_extrinsic":  checkVector(func(x *codec.Preimages) any { return showEach(*x, showPreimage) }),
		"guarantees_extrinsic": checkVector(func(x *codec.Guarantees) any { return showEach(*x, showGuarantee) }),
		"assurances_extrinsic": checkVector(func(x *codec.Assurances) any { return showEach(*x, showAssurance) }),
		"disputes_extrinsic":   checkVector(func(x *codec.Disputes) any { return showDisputes(x) }),
		"extrinsic":            checkVector(func(x *codec.Extrinsics) any { return showExtrinsic(x) }),
		"block":                checkVector(func(x *codec.Block) any { return showBlock(x) }),
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	require.NoError(t, err)
	require.Len(t, files, len(checks))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bin")
		t.Run(name, func(t *testing.T) {
			check := checks[name]
			require.NotNil(t, check)
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			text, err := os.ReadFile(strings.TrimSuffix(file, ".bin") + ".json")
			require.NoError(t, err)
			check(t, tiny(t, codec.V072), raw, text)
		})
	}
}

func TestVectorPackageHash(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(vectors(t), "codec", "work_package.bin"))
	require.NoError(t, err)
	c := tiny(t, codec.V072)
	p, err := codec.Decode[codec.WorkPackage](c, raw)
	require.NoError(t, err)
	hash, err := c.PackageHash(&p)
	require.NoError(t, err)
	require.Equal(t, "0xef4afe1c68afc76d148d91c3b3627decf0d8f361c6aae1e42e0ca0b5bd7a2033", hash.String())
}

// TestVectorsTrace encodes 100 consecutive blocks of a real chain from their
// JSON. The chain confirms the encoding: the hash of each header appears in
// recent history and in the next header, and the hash of the extrinsic in its
// header. A view that imports the decoded blocks accumulates the same packages
// as the chain.
func TestVectorsTrace(t *testing.T) {
	f, err := os.Open(filepath.Join(vectors(t), "trace-storage_light.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	c := tiny(t, codec.V072)
	blocks, reports, accumulated := 0, 0, 0
	var view *chainview.View
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Block json.RawMessage
			Post  struct{ Chapters map[string]hexutil.Bytes }
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		b := readBlock(t, line.Block)
		raw, err := c.Encode(&b)
		require.NoError(t, err)
		back, err := codec.Decode[codec.Block](c, raw)
		require.NoError(t, err)
		require.Equal(t, b, back)
		text, err := json.Marshal(showBlock(&back))
		require.NoError(t, err)
		require.JSONEq(t, string(line.Block), string(text))
		imported, err := c.Imported(&back)
		require.NoError(t, err, "the header commits to the extrinsic")
		require.Equal(t, newestInHistory(t, c, line.Post.Chapters), imported.Hash)
		spec := jamq.Tiny()
		spec.MaxLookupAnchorAge = 14_400 // as this chain was built
		require.NoError(t, imported.Validate(&spec))
		if view == nil {
			view, err = chainview.New(&spec, jamq.Block{Hash: imported.Parent})
			require.NoError(t, err)
		}
		for _, r := range imported.Reported {
			_, err := view.Watch(r.Package, chainview.Package{Anchor: r.Anchor, LookupAnchorSlot: imported.Slot, Prerequisites: r.Prerequisites})
			require.NoError(t, err)
		}
		require.NoError(t, view.ImportBest(&imported, imported.Hash))
		var newest []jamq.PackageHash
		view.Changes(func(trace *chainview.Trace) {
			if trace.Status().Accumulated.Hash == imported.Hash {
				newest = append(newest, trace.Package())
			}
		})
		require.ElementsMatch(t, newestAccumulated(t, &spec, line.Post.Chapters), newest)
		blocks, reports, accumulated = blocks+1, reports+len(imported.Reported), accumulated+len(newest)
	}
	require.NoError(t, lines.Err())
	require.Equal(t, []int{100, 85}, []int{blocks, reports})
	require.Greater(t, accumulated, 70)
}

// newestInHistory returns the hash of the last block in the recent history, chapter C(3).
func newestInHistory(t *testing.T, c *codec.Codec, chapters map[string]hexutil.Bytes) jamq.HeaderHash {
	t.Helper()
	raw := []byte(chapters["C3"])
	h, err := codec.Decode[codec.RecentHistory](c, raw)
	require.NoError(t, err)
	again, err := c.Encode(&h)
	require.NoError(t, err)
	require.Equal(t, raw, again)
	require.NotEmpty(t, h.Blocks)
	newest := h.Blocks[len(h.Blocks)-1]
	require.Zero(t, newest.StateRoot)
	return newest.Hash
}

// newestAccumulated returns what the last block accumulated, from chapter C(15): as many sequences
// of hashes as an epoch has slots.
func newestAccumulated(t *testing.T, spec *jamq.ChainSpec, chapters map[string]hexutil.Bytes) []jamq.PackageHash {
	t.Helper()
	raw := []byte(chapters["C15"])
	newest := []jamq.PackageHash{}
	for range spec.EpochLength {
		n, rest, err := codec.DecodeNatural(raw)
		require.NoError(t, err)
		newest = newest[:0]
		for raw = rest; n > 0; n-- {
			newest, raw = append(newest, jamq.PackageHash(raw[:32])), raw[32:]
		}
	}
	require.Empty(t, raw)
	return newest
}

// And this reads the JSON of the trace's blocks, which hold no more than headers, guarantees and
// assurances.

type jsonBlock struct {
	Header struct {
		Parent          jamq.HeaderHash
		ParentStateRoot common.Hash `json:"parent_state_root"`
		ExtrinsicHash   common.Hash `json:"extrinsic_hash"`
		Slot            jamq.Slot
		EpochMark       *struct {
			Entropy        common.Hash
			TicketsEntropy common.Hash `json:"tickets_entropy"`
			Validators     []struct{ Bandersnatch, Ed25519 common.Hash }
		} `json:"epoch_mark"`
		TicketsMark []json.RawMessage `json:"tickets_mark"`
		Author      uint16            `json:"author_index"`
		Entropy     hexutil.Bytes     `json:"entropy_source"`
		Offenders   []json.RawMessage `json:"offenders_mark"`
		Seal        hexutil.Bytes
	}
	Extrinsic struct {
		Tickets, Preimages []json.RawMessage
		Guarantees         []jsonGuarantee
		Assurances         []struct {
			Anchor    jamq.HeaderHash
			Bitfield  hexutil.Bytes
			Validator uint16 `json:"validator_index"`
			Signature hexutil.Bytes
		}
		Disputes struct{ Verdicts, Culprits, Faults []json.RawMessage }
	}
}

type jsonGuarantee struct {
	Report struct {
		Spec struct {
			Hash        jamq.PackageHash
			Length      uint32
			ErasureRoot common.Hash `json:"erasure_root"`
			ExportsRoot common.Hash `json:"exports_root"`
			ExportCount uint16      `json:"exports_count"`
		} `json:"package_spec"`
		Context struct {
			Anchor           jamq.HeaderHash
			StateRoot        common.Hash     `json:"state_root"`
			BeefyRoot        common.Hash     `json:"beefy_root"`
			LookupAnchor     jamq.HeaderHash `json:"lookup_anchor"`
			LookupAnchorSlot jamq.Slot       `json:"lookup_anchor_slot"`
			Prerequisites    []jamq.PackageHash
		}
		Core        jamq.CoreIndex `json:"core_index"`
		Authorizer  common.Hash    `json:"authorizer_hash"`
		AuthGasUsed uint64         `json:"auth_gas_used"`
		Trace       hexutil.Bytes  `json:"auth_output"`
		Lookups     []struct {
			Package jamq.PackageHash `json:"work_package_hash"`
			Root    common.Hash      `json:"segment_tree_root"`
		} `json:"segment_root_lookup"`
		Results []struct {
			Service       jamq.ServiceID `json:"service_id"`
			CodeHash      common.Hash    `json:"code_hash"`
			PayloadHash   common.Hash    `json:"payload_hash"`
			AccumulateGas uint64         `json:"accumulate_gas"`
			Result        map[string]*hexutil.Bytes
			Load          struct {
				GasUsed        uint64 `json:"gas_used"`
				Imports        uint16
				ExtrinsicCount uint16 `json:"extrinsic_count"`
				ExtrinsicSize  uint32 `json:"extrinsic_size"`
				Exports        uint16
			} `json:"refine_load"`
		}
	}
	Slot       jamq.Slot
	Signatures []struct {
		Validator uint16 `json:"validator_index"`
		Signature hexutil.Bytes
	}
}

func readBlock(t *testing.T, text []byte) codec.Block {
	t.Helper()
	var j jsonBlock
	require.NoError(t, json.Unmarshal(text, &j))
	h, x := &j.Header, &j.Extrinsic
	require.Zero(t, len(h.TicketsMark)+len(h.Offenders)+len(x.Tickets)+len(x.Preimages)+len(x.Disputes.Verdicts)+len(x.Disputes.Culprits)+len(x.Disputes.Faults))
	b := codec.Block{Header: codec.Header{
		Parent: h.Parent, ParentStateRoot: h.ParentStateRoot, ExtrinsicHash: h.ExtrinsicHash, Slot: h.Slot, Author: h.Author,
		Entropy: [96]byte(h.Entropy), Seal: [96]byte(h.Seal),
	}}
	if m := h.EpochMark; m != nil {
		b.Header.Epoch = &codec.EpochMark{Entropy: m.Entropy, TicketsEntropy: m.TicketsEntropy}
		for _, v := range m.Validators {
			b.Header.Epoch.Validators = append(b.Header.Epoch.Validators, codec.ValidatorKeys{Bandersnatch: v.Bandersnatch, Ed25519: v.Ed25519})
		}
	}
	for i := range x.Guarantees {
		b.Extrinsic.Guarantees = append(b.Extrinsic.Guarantees, x.Guarantees[i].read(t))
	}
	for _, a := range x.Assurances {
		b.Extrinsic.Assurances = append(b.Extrinsic.Assurances, codec.Assurance{
			Anchor: a.Anchor, Bitfield: a.Bitfield, Validator: a.Validator, Signature: [64]byte(a.Signature),
		})
	}
	return b
}

func (j *jsonGuarantee) read(t *testing.T) codec.Guarantee {
	t.Helper()
	r := &j.Report
	g := codec.Guarantee{Slot: j.Slot, Report: codec.WorkReport{
		Package: codec.PackageSpec{
			Hash: r.Spec.Hash, Length: r.Spec.Length, ErasureRoot: r.Spec.ErasureRoot, SegmentRoot: r.Spec.ExportsRoot, SegmentCount: r.Spec.ExportCount,
		},
		Context: jamq.RefineContext{
			Anchor: r.Context.Anchor, StateRoot: r.Context.StateRoot, BeefyRoot: r.Context.BeefyRoot, LookupAnchor: r.Context.LookupAnchor,
			LookupAnchorSlot: r.Context.LookupAnchorSlot,
		},
		Core: r.Core, Authorizer: r.Authorizer, AuthGasUsed: r.AuthGasUsed,
	}}
	if len(r.Trace) > 0 {
		g.Report.Trace = r.Trace
	}
	if len(r.Context.Prerequisites) > 0 {
		g.Report.Context.Prerequisites = r.Context.Prerequisites
	}
	for _, l := range r.Lookups {
		g.Report.Lookups = append(g.Report.Lookups, codec.SegmentLookup{Package: l.Package, SegmentRoot: l.Root})
	}
	for _, x := range r.Results {
		d := codec.WorkDigest{
			Service: x.Service, CodeHash: x.CodeHash, PayloadHash: x.PayloadHash, AccumulateGas: x.AccumulateGas, GasUsed: x.Load.GasUsed,
			Imports: x.Load.Imports, ExtrinsicCount: x.Load.ExtrinsicCount, ExtrinsicSize: x.Load.ExtrinsicSize, Exports: x.Load.Exports,
		}
		require.Len(t, x.Result, 1)
		output, done := x.Result["ok"]
		if done && len(*output) > 0 {
			d.Output = *output
		}
		for outcome, name := range outcomes {
			if _, ok := x.Result[name]; ok {
				d.Outcome = outcome
			}
		}
		require.True(t, done == (d.Outcome == codec.Done), "%v", x.Result)
		g.Report.Digests = append(g.Report.Digests, d)
	}
	for _, s := range j.Signatures {
		g.Signatures = append(g.Signatures, codec.ValidatorSignature{Validator: s.Validator, Signature: [64]byte(s.Signature)})
	}
	return g
}

// The cores of the whole state, chapter C(10), hold real reports as well: each decodes and encodes
// to the same bytes.
func TestVectorsReportsOnCores(t *testing.T) {
	f, err := os.Open(filepath.Join(vectors(t), "trace-storage_light.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	c := tiny(t, codec.V072)
	reports := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Post struct{ Chapters map[string]hexutil.Bytes }
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		raw := []byte(line.Post.Chapters["C10"])
		for range jamq.Tiny().Cores {
			require.NotEmpty(t, raw)
			there := raw[0]
			raw = raw[1:]
			if there == 0 {
				continue
			}
			r, rest, err := codec.DecodePrefix[codec.WorkReport](c, raw)
			require.NoError(t, err)
			again, err := c.Encode(&r)
			require.NoError(t, err)
			require.Equal(t, raw[:len(raw)-len(rest)], again)
			require.Positive(t, binary.LittleEndian.Uint32(rest), "the slot in which it was reported")
			raw = rest[4:]
			reports++
		}
		require.Empty(t, raw)
	}
	require.NoError(t, lines.Err())
	require.Positive(t, reports)
}
