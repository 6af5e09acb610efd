package codec_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

func tiny(t testing.TB, version codec.Version) *codec.Codec {
	t.Helper()
	c, err := codec.New(version, jamq.Tiny())
	require.NoError(t, err)
	return c
}

// The boundaries of each length.
func TestNaturals(t *testing.T) {
	for x, want := range map[uint64]string{
		0: "00", 127: "7f", 128: "8080", 1<<14 - 1: "bfff", 1 << 14: "c00040", 1<<56 - 1: "feffffffffffffff",
		1 << 56: "ff0000000000000001", 1<<64 - 1: "ffffffffffffffffff",
	} {
		require.Equal(t, want, hex.EncodeToString(codec.AppendNatural(nil, x)), x)
	}
	for _, long := range []string{"8000", "807f", "c03f00", "fe00000000000000", "ff00000000000000"} {
		raw, err := hex.DecodeString(long)
		require.NoError(t, err)
		if long == "ff00000000000000" { // a byte short as well
			raw = append(raw, 0)
		}
		_, _, err = codec.DecodeNatural(raw)
		require.Error(t, err, long)
		require.True(t, errors.Is(err, codec.ErrNonCanonical) || errors.Is(err, codec.ErrTruncated), long)
	}
}

func TestNaturalsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64().Draw(t, "x") >> rapid.IntRange(0, 63).Draw(t, "shift")
		raw := codec.AppendNatural(nil, x)
		back, rest, err := codec.DecodeNatural(append(raw, 7))
		require.NoError(t, err)
		require.Equal(t, x, back)
		require.Equal(t, []byte{7}, rest)
		for n := range raw {
			_, _, err := codec.DecodeNatural(raw[:n])
			require.ErrorIs(t, err, codec.ErrTruncated)
		}
	})
}

func TestVersionText(t *testing.T) {
	for _, v := range []codec.Version{codec.V072, codec.V080} {
		text, err := v.MarshalText()
		require.NoError(t, err)
		var back codec.Version
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, v, back)
	}
	v := codec.V080
	for _, text := range []string{"", "0.8", "0.8.0 ", "codec.Version(2)", "1"} {
		require.ErrorIs(t, v.UnmarshalText([]byte(text)), codec.ErrUnknownVersion, text)
	}
	require.Equal(t, codec.V080, v)
}

func samplePackage() codec.WorkPackage {
	return codec.WorkPackage{
		AuthCodeHost: 7, AuthCodeHash: common.Hash{1}, Authorization: []byte("token"),
		Context: jamq.RefineContext{Anchor: jamq.HeaderHash{2}, LookupAnchorSlot: 9, Prerequisites: []jamq.PackageHash{{1}, {2}}},
		Items: []codec.WorkItem{{
			Service: 8, RefineGas: 1 << 40, ExportCount: 3, Payload: make([]byte, 300),
			Imports:    []codec.Import{{Root: common.Hash{3}, Index: 5}, {Root: common.Hash{4}, ByPackage: true}},
			Extrinsics: []codec.Extrinsic{{Hash: common.Hash{5}, Length: 6}},
		}},
	}
}

// TestEncodePackage: the bytes that guarantors get, and the hash that the chain knows them by.
func TestEncodePackage(t *testing.T) {
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	p := samplePackage()
	raw, hash, err := c.EncodePackage(&p)
	require.NoError(t, err)
	again, err := c.Encode(&p)
	require.NoError(t, err)
	require.Equal(t, again, raw)
	want, err := c.PackageHash(&p)
	require.NoError(t, err)
	require.Equal(t, want, hash)
	p.Context.Prerequisites = []jamq.PackageHash{{2}, {1}}
	_, _, err = c.EncodePackage(&p)
	require.ErrorIs(t, err, codec.ErrNonCanonical)
}

// sampleBlock has something in every part of a block.
func sampleBlock() codec.Block {
	p := samplePackage()
	report := codec.WorkReport{
		Package: codec.PackageSpec{Hash: jamq.PackageHash{6}, Length: 7, SegmentCount: 8}, Context: p.Context, Core: 1, AuthGasUsed: 1 << 20,
		Trace: []byte("trace"), Lookups: []codec.SegmentLookup{{Package: jamq.PackageHash{1}}, {Package: jamq.PackageHash{3}, SegmentRoot: common.Hash{4}}},
		Digests: []codec.WorkDigest{{Service: 1, Output: []byte("out"), GasUsed: 1 << 40, ExtrinsicSize: 1 << 31}, {Outcome: codec.BigCode, Imports: 1 << 15}},
	}
	votes := []codec.Vote{{Valid: true}, {Valid: true, Validator: 1}, {Validator: 2}, {Valid: true, Validator: 3}, {Valid: true, Validator: 4}}
	return codec.Block{
		Header: codec.Header{
			Parent: jamq.HeaderHash{1}, Slot: 9, Author: 3, Offenders: [][32]byte{{1}, {2}},
			Epoch:   &codec.EpochMark{Entropy: common.Hash{1}, Validators: make([]codec.ValidatorKeys, 6)},
			Tickets: &codec.TicketsMark{Tickets: make([]codec.TicketBody, 12)},
		},
		Extrinsic: codec.Extrinsics{
			Tickets:    codec.Tickets{{Attempt: 2}},
			Preimages:  codec.Preimages{{Service: 3, Data: []byte("data")}},
			Guarantees: codec.Guarantees{{Report: report, Slot: 8, Signatures: []codec.ValidatorSignature{{Validator: 1}, {Validator: 2}}}},
			Assurances: codec.Assurances{{Anchor: jamq.HeaderHash{1}, Bitfield: []byte{3}, Validator: 4}},
			Disputes: codec.Disputes{
				Verdicts: []codec.Verdict{{Target: common.Hash{1}, Epoch: 2, Votes: votes}},
				Culprits: []codec.Culprit{{Key: [32]byte{1}}}, Faults: []codec.Fault{{Valid: true, Key: [32]byte{2}}},
			},
		},
	}
}

// The hash of the authorizer covers its code hash and its configuration.
func TestAuthorizer(t *testing.T) {
	p := codec.WorkPackage{AuthCodeHash: common.Hash{7}, AuthorizerConfig: []byte("builder")}
	require.Equal(t, common.Hash(blake2b.Sum256(append(common.Hash{7}.Bytes(), "builder"...))), p.Authorizer())
}

func TestRoundTripAndEveryTruncation(t *testing.T) {
	for _, version := range []codec.Version{codec.V072, codec.V080} {
		c := tiny(t, version)
		b := sampleBlock()
		if version == codec.V080 {
			b.Extrinsic.Guarantees[0].Report.Context.AnchorSlot = 5
			b.Extrinsic.Guarantees[0].Report.Context.LookupStateRoot = common.Hash{9}
		}
		raw, err := c.Encode(&b)
		require.NoError(t, err)
		back, err := codec.Decode[codec.Block](c, raw)
		require.NoError(t, err)
		require.Equal(t, b, back)
		for n := range raw {
			_, err := codec.Decode[codec.Block](c, raw[:n])
			require.ErrorIs(t, err, codec.ErrTruncated, "cut to %d bytes", n)
		}
		_, err = codec.Decode[codec.Block](c, append(raw, 0))
		require.ErrorIs(t, err, codec.ErrNonCanonical)
		_, rest, err := codec.DecodePrefix[codec.Block](c, append(raw, 1, 2))
		require.NoError(t, err)
		require.Equal(t, []byte{1, 2}, rest)
	}
}

// From 0.8.0 on the size of a validator set changes: the keys of an epoch mark and the votes of a
// verdict have a count. Before, their number is that of the chain's constants.
func TestSmallerValidatorSet(t *testing.T) {
	b := sampleBlock()
	b.Header.Epoch.Validators = b.Header.Epoch.Validators[:3]
	b.Extrinsic.Disputes.Verdicts[0].Votes = b.Extrinsic.Disputes.Verdicts[0].Votes[:3]
	for _, part := range []codec.Value{&b.Header, &b.Extrinsic.Disputes} {
		_, err := tiny(t, codec.V072).Encode(part)
		require.ErrorIs(t, err, codec.ErrWrongLength)
	}
	newer := tiny(t, codec.V080)
	raw, err := newer.Encode(&b)
	require.NoError(t, err)
	back, err := codec.Decode[codec.Block](newer, raw)
	require.NoError(t, err)
	require.Equal(t, b, back)
}

// The versions differ in the refine context: a version neither writes nor reads
// the fields that only the other one has.
func TestVersions(t *testing.T) {
	context := codec.RefineContext{
		Anchor: jamq.HeaderHash{1}, AnchorSlot: 0x01020304, StateRoot: common.Hash{2}, BeefyRoot: common.Hash{3},
		LookupAnchor: jamq.HeaderHash{4}, LookupAnchorSlot: 5, LookupStateRoot: common.Hash{6}, Prerequisites: []jamq.PackageHash{{7}},
	}
	older, err := tiny(t, codec.V072).Encode(&context)
	require.NoError(t, err)
	newer, err := tiny(t, codec.V080).Encode(&context)
	require.NoError(t, err)
	require.Len(t, older, 133+32)
	require.Len(t, newer, 133+32+4+32)
	require.Equal(t, []byte{4, 3, 2, 1, 2}, newer[32:37], "the anchor's slot, then its state root")
	require.Equal(t, byte(6), newer[32*4+4+4], "the lookup anchor's state root after its slot")
	back, err := codec.Decode[codec.RefineContext](tiny(t, codec.V080), newer)
	require.NoError(t, err)
	require.Equal(t, context, back)
	_, err = codec.Decode[codec.RefineContext](tiny(t, codec.V072), newer)
	require.Error(t, err)
	_, err = codec.New(codec.V080+1, jamq.Tiny())
	require.ErrorIs(t, err, codec.ErrUnknownVersion)
	_, err = codec.New(codec.V072, jamq.ChainSpec{})
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
	require.Equal(t, "0.7.2 0.8.0 codec.Version(9)", fmt.Sprint(codec.V072, codec.V080, codec.Version(9)))
}

func TestEncodeRefuses(t *testing.T) {
	c := tiny(t, codec.V072)
	for name, x := range map[string]struct {
		value codec.Value
		want  error
	}{
		"prerequisites": {&codec.RefineContext{Prerequisites: []jamq.PackageHash{{2}, {1}}}, codec.ErrNonCanonical},
		"twice":         {&codec.RefineContext{Prerequisites: []jamq.PackageHash{{2}, {2}}}, codec.ErrNonCanonical},
		"lookups":       {&codec.WorkReport{Lookups: []codec.SegmentLookup{{Package: jamq.PackageHash{2}}, {}}}, codec.ErrNonCanonical},
		"import index":  {&codec.WorkItem{Imports: []codec.Import{{Index: 1 << 15}}}, codec.ErrTooLarge},
		"outcome":       {&codec.WorkDigest{Outcome: 7}, codec.ErrNonCanonical},
		"output":        {&codec.WorkDigest{Outcome: codec.Panicked, Output: []byte{1}}, codec.ErrNonCanonical},
		"bitfield":      {&codec.Assurances{{Bitfield: []byte{1, 2}}}, codec.ErrWrongLength},
		"no such core":  {&codec.Assurances{{Bitfield: []byte{4}}}, codec.ErrNonCanonical},
		"votes":         {&codec.Disputes{Verdicts: []codec.Verdict{{}}}, codec.ErrWrongLength},
		"validators":    {&codec.Header{Epoch: &codec.EpochMark{}}, codec.ErrWrongLength},
		"tickets":       {&codec.Header{Tickets: &codec.TicketsMark{}}, codec.ErrWrongLength},
	} {
		raw, err := c.Encode(x.value)
		require.ErrorIs(t, err, x.want, name)
		require.Nil(t, raw, name)
	}
}

func TestDecodeRefuses(t *testing.T) {
	c := tiny(t, codec.V072)
	context, err := c.Encode(&codec.RefineContext{})
	require.NoError(t, err)
	_, err = codec.Decode[codec.RefineContext](c, append(context[:len(context)-1], 0x80, 0))
	require.ErrorIs(t, err, codec.ErrNonCanonical, "a count of zero in two bytes")
	header, err := c.Encode(&codec.Header{})
	require.NoError(t, err)
	header[100] = 2
	_, err = codec.Decode[codec.Header](c, header)
	require.ErrorIs(t, err, codec.ErrNonCanonical, "neither there nor not")
	report, err := c.Encode(&codec.WorkReport{})
	require.NoError(t, err)
	at := 102 + 133 // the core
	report = append(append(append([]byte{}, report[:at]...), codec.AppendNatural(nil, 1<<16)...), report[at+1:]...)
	_, err = codec.Decode[codec.WorkReport](c, report)
	require.ErrorIs(t, err, codec.ErrTooLarge, "core 65536")
}

// A length that the input does not have costs nothing.
func TestHostileLengths(t *testing.T) {
	c, err := codec.New(codec.V072, jamq.Full())
	require.NoError(t, err)
	hostile := func(prefix int) []byte {
		return append(make([]byte, prefix), codec.AppendNatural(nil, 1<<60)...)
	}
	header := make([]byte, 100)
	header = append(header, 1) // an epoch mark of 1023 validators, of which none is there
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		_, err := codec.Decode[codec.RefineContext](c, hostile(132))
		require.ErrorIs(t, err, codec.ErrTruncated)
		_, err = codec.Decode[codec.WorkItem](c, hostile(54))
		require.ErrorIs(t, err, codec.ErrTruncated)
		_, err = codec.Decode[codec.Tickets](c, hostile(0))
		require.ErrorIs(t, err, codec.ErrTruncated)
		_, err = codec.Decode[codec.Header](c, header)
		require.ErrorIs(t, err, codec.ErrTruncated)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "100 times four refusals")
}

func TestDecodedSharesNothing(t *testing.T) {
	c := tiny(t, codec.V072)
	p := samplePackage()
	raw, err := c.Encode(&p)
	require.NoError(t, err)
	back, err := codec.Decode[codec.WorkPackage](c, raw)
	require.NoError(t, err)
	clear(raw)
	require.Equal(t, p, back)
}

func TestImportedRefusesAnotherExtrinsic(t *testing.T) {
	c := tiny(t, codec.V072)
	b := sampleBlock()
	var err error
	b.Header.ExtrinsicHash, err = c.ExtrinsicHash(&b.Extrinsic)
	require.NoError(t, err)
	imported, err := c.Imported(&b)
	require.NoError(t, err)
	require.Equal(t, []common.Hash{{1}}, imported.Condemned, "one of five votes is against")
	require.Equal(t, []jamq.PackageHash{{1}, {2}, {1}, {3}}, imported.Reported[0].Prerequisites)
	require.Equal(t, jamq.CoreIndex(1), imported.Reported[0].Core)
	b.Extrinsic.Guarantees = nil
	_, err = c.Imported(&b)
	require.ErrorIs(t, err, codec.ErrExtrinsicHash)
}

func ExampleCodec_PackageHash() {
	c, err := codec.New(codec.V072, jamq.Tiny())
	if err != nil {
		fmt.Println(err)
		return
	}
	p := codec.WorkPackage{AuthCodeHost: 1, Items: []codec.WorkItem{{Service: 1, Payload: []byte("block 7")}}}
	hash, err := c.PackageHash(&p)
	fmt.Println(hash.Short(), err)
	// Output: dce068fb <nil>
}

func ExampleDecode() {
	c, err := codec.New(codec.V072, jamq.Tiny())
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := c.Encode(&codec.WorkItem{Service: 1, Payload: []byte("block 7")})
	fmt.Println(len(raw), "bytes", err)
	item, err := codec.Decode[codec.WorkItem](c, raw)
	fmt.Printf("%s %v\n", item.Payload, err)
	_, err = codec.Decode[codec.WorkItem](c, raw[:60])
	fmt.Println(err)
	// Output:
	// 64 bytes <nil>
	// block 7 <nil>
	// codec: input truncated: 5 bytes left, want 7
}

// fullBlock is a block of the full chain: 341 guarantees, 1,023 assurances.
func fullBlock(b *testing.B) (*codec.Codec, codec.Block) {
	b.Helper()
	c, err := codec.New(codec.V072, jamq.Full())
	require.NoError(b, err)
	block := codec.Block{Header: codec.Header{Slot: 7}}
	for core := range 341 {
		g := codec.Guarantee{Signatures: make([]codec.ValidatorSignature, 3)}
		g.Report.Core, g.Report.Package.Hash = jamq.CoreIndex(core), jamq.PackageHash{byte(core), byte(core >> 8), 1}
		g.Report.Digests = []codec.WorkDigest{{Output: make([]byte, 1000)}}
		block.Extrinsic.Guarantees = append(block.Extrinsic.Guarantees, g)
	}
	for v := range 1023 {
		a := codec.Assurance{Validator: uint16(v), Bitfield: make([]byte, 43)}
		block.Extrinsic.Assurances = append(block.Extrinsic.Assurances, a)
	}
	block.Header.ExtrinsicHash, err = c.ExtrinsicHash(&block.Extrinsic)
	require.NoError(b, err)
	return c, block
}

func BenchmarkDecodeFullBlock(b *testing.B) {
	c, block := fullBlock(b)
	raw, err := c.Encode(&block)
	require.NoError(b, err)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.Decode[codec.Block](c, raw); err != nil {
			b.Fatal(err)
		}
	}
}

// The work of a follower for a block: encode and hash it again, count assurances.
func BenchmarkImportedFullBlock(b *testing.B) {
	c, block := fullBlock(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Imported(&block); err != nil {
			b.Fatal(err)
		}
	}
}

// Elements that are much smaller than their memory are refused before they take it; the largest
// allowed input takes twice its length and 4 MiB. A block can have any number of preimages that
// are not tiny.
func TestDecodedMemory(t *testing.T) {
	c := tiny(t, codec.V072)
	allocated := func(raw []byte) (uint64, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := codec.Decode[codec.Extrinsics](c, raw)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	const spare = 4<<20 + 128<<10
	for _, test := range []struct {
		preimages, size int
		refused         bool
	}{{100_000, 0, false}, {180_000, 0, false}, {200_000, 0, true}, {1_000_000, 0, true}, {200_000, 16, false}, {400_000, 22, false}} {
		x := codec.Extrinsics{Preimages: make(codec.Preimages, test.preimages)}
		for i := range x.Preimages {
			x.Preimages[i].Data = make([]byte, test.size)
		}
		raw, err := c.Encode(&x)
		require.NoError(t, err)
		bytes, err := allocated(raw)
		require.Equal(t, test.refused, errors.Is(err, codec.ErrTooLarge), "%+v: %v", test, err)
		require.LessOrEqual(t, bytes, uint64(2*len(raw)+spare), "%+v", test)
	}
	x := codec.Extrinsics{Guarantees: make(codec.Guarantees, 2_000)}
	for i := range x.Guarantees {
		x.Guarantees[i].Report.Digests = make([]codec.WorkDigest, 16)
	}
	raw, err := c.Encode(&x)
	require.NoError(t, err)
	bytes, err := allocated(raw)
	require.NoError(t, err)
	require.LessOrEqual(t, bytes, uint64(2*len(raw)+64<<10), len(raw))
	nested := append([]byte{0, 0}, codec.AppendNatural(nil, uint64(len(raw)/300))...)
	nested = append(nested, raw[3:]...) // claims more than there is
	bytes, err = allocated(nested)
	require.Error(t, err)
	require.LessOrEqual(t, bytes, uint64(2*len(raw)+64<<10), len(raw))
}
