package codec_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// The boundaries of each length.
func TestNaturals(t *testing.T) {
	for x, want := range map[uint64]string{
		0: "00", 127: "7f", 128: "8080", 1<<14 - 1: "bfff", 1 << 14: "c00040", 1<<56 - 1: "feffffffffffffff",
		1 << 56: "ff0000000000000001", 1<<64 - 1: "ffffffffffffffffff",
	} {
		require.Equal(t, want, hex.EncodeToString(codec.AppendNatural(nil, x)), x)
	}
}

func vector(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("JAMQ_VECTORS")
	if dir == "" {
		t.Skip("JAMQ_VECTORS is not set: the public vectors are not here")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "jam", "codec", name))
	require.NoError(t, err)
	return raw
}

// The public vectors decode, encode to the same bytes, and the package has its known hash.
func TestVectors(t *testing.T) {
	raw := vector(t, "work_package.bin")
	p, err := codec.DecodeWorkPackage(raw)
	require.NoError(t, err)
	again, err := p.Encode()
	require.NoError(t, err)
	require.Equal(t, raw, again)
	hash, err := p.Hash()
	require.NoError(t, err)
	require.Equal(t, "0xef4afe1c68afc76d148d91c3b3627decf0d8f361c6aae1e42e0ca0b5bd7a2033", hash.String())

	raw = vector(t, "work_item.bin")
	item, err := codec.DecodeWorkItem(raw)
	require.NoError(t, err)
	again, err = item.Encode()
	require.NoError(t, err)
	require.Equal(t, raw, again)

	raw = vector(t, "refine_context.bin")
	context, err := codec.DecodeRefineContext(raw)
	require.NoError(t, err)
	require.Equal(t, jamq.Slot(33), context.LookupAnchorSlot)
	require.Equal(t, "0xc0564c5e0de0942589df4343ad1956da66797240e2a2f2d6f8116b5047768986", context.Anchor.String())
	again, err = codec.AppendRefineContext(nil, &context)
	require.NoError(t, err)
	require.Equal(t, raw, again)
}

func sample() codec.WorkPackage {
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

func TestRoundTripAndEveryTruncation(t *testing.T) {
	p := sample()
	raw, err := p.Encode()
	require.NoError(t, err)
	back, err := codec.DecodeWorkPackage(raw)
	require.NoError(t, err)
	require.Equal(t, p, back)
	for n := range raw {
		_, err := codec.DecodeWorkPackage(raw[:n])
		require.ErrorIs(t, err, codec.ErrTruncated, "cut to %d bytes", n)
	}
	_, err = codec.DecodeWorkPackage(append(raw, 0))
	require.ErrorIs(t, err, codec.ErrNonCanonical)
}

func TestRefusals(t *testing.T) {
	c := jamq.RefineContext{Prerequisites: []jamq.PackageHash{{2}, {1}}}
	_, err := codec.AppendRefineContext(nil, &c)
	require.ErrorIs(t, err, codec.ErrNonCanonical)
	item := codec.WorkItem{Imports: []codec.Import{{Index: 1 << 15}}}
	_, err = item.Encode()
	require.ErrorIs(t, err, codec.ErrTooLarge)
	// A count of zero in two bytes.
	c.Prerequisites = nil
	raw, err := codec.AppendRefineContext(nil, &c)
	require.NoError(t, err)
	_, err = codec.DecodeRefineContext(append(raw[:len(raw)-1], 0x80, 0))
	require.ErrorIs(t, err, codec.ErrNonCanonical)
}

func TestContextsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := jamq.RefineContext{LookupAnchorSlot: jamq.Slot(rapid.Uint32().Draw(t, "slot"))}
		for i := range rapid.IntRange(0, 200).Draw(t, "prerequisites") {
			c.Prerequisites = append(c.Prerequisites, jamq.PackageHash{byte(i), 1})
		}
		raw, err := codec.AppendRefineContext(nil, &c)
		require.NoError(t, err)
		back, err := codec.DecodeRefineContext(raw)
		require.NoError(t, err)
		require.Equal(t, c, back)
	})
}

// Whatever decodes encodes to the same bytes, and nothing panics.
func FuzzDecodeWorkPackage(f *testing.F) {
	p := sample()
	raw, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := codec.DecodeWorkPackage(raw)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("%v: decodes, and encodes to other bytes", err)
		}
	})
}

func ExampleWorkPackage_Hash() {
	p := codec.WorkPackage{AuthCodeHost: 1, Items: []codec.WorkItem{{Service: 1, Payload: []byte("block 7")}}}
	hash, err := p.Hash()
	fmt.Println(hash.Short(), err)
	// Output: dce068fb <nil>
}
