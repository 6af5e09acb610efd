package codec_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// No official vectors of Gray Paper 0.8.0 exist. These were made with another public
// implementation. They have no disputes, tickets, tickets mark or assurances, and no whole package:
// for those the tests have the text of the Gray Paper only.

// checkVector080 decodes a vector, holds every field of it against the JSON beside it, and encodes
// it to the same bytes.
func checkVector080[T any, P interface {
	*T
	codec.Value
}](show func(*T) any) func(*testing.T, *codec.Codec, []byte, []byte) {
	return func(t *testing.T, c *codec.Codec, raw, text []byte) {
		v, err := codec.Decode[T, P](c, raw)
		require.NoError(t, err)
		shown, err := json.Marshal(show(&v))
		require.NoError(t, err)
		var want, have any
		require.NoError(t, json.Unmarshal(text, &want))
		require.NoError(t, json.Unmarshal(shown, &have))
		require.Equal(t, plain(t, "", want), plain(t, "", have))
		again, err := c.Encode(P(&v))
		require.NoError(t, err)
		require.Equal(t, raw, again)
		for n := range min(len(raw), 500) {
			_, err := codec.Decode[T, P](c, raw[:n])
			require.ErrorIs(t, err, codec.ErrTruncated, "cut to %d bytes", n)
		}
	}
}

// plain returns JSON in a form that does not depend on the author: names in lower case, no empty
// values, byte strings in hexadecimal, and outcomes as one text.
func plain(t *testing.T, name string, v any) any {
	t.Helper()
	switch x := v.(type) {
	case map[string]any:
		if name == "result" {
			return outcome080(t, x)
		}
		out := map[string]any{}
		for k, field := range x {
			k = strings.ToLower(k)
			if p := plain(t, k, field); p != nil {
				out[k] = p
			}
		}
		return out
	case []any:
		var out []any
		for _, e := range x {
			out = append(out, plain(t, name, e))
		}
		if out == nil {
			return nil
		}
		return out
	case string:
		if name == "auth_output" || name == "blob" {
			return bytes080(t, x)
		}
	}
	return v
}

// bytes080 returns a byte string in hexadecimal.
func bytes080(t *testing.T, text string) string {
	t.Helper()
	if strings.HasPrefix(text, "0x") {
		return text
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return hexutil.Encode(raw)
}

// outcome080 returns the outcome of a work item as one text.
func outcome080(t *testing.T, x map[string]any) string {
	t.Helper()
	kind, data := "", any(nil)
	if text, ok := x["Type"].(string); ok {
		kind, data = strings.ReplaceAll(text, "-", "_"), x["Data"]
	} else {
		for kind, data = range x {
		}
	}
	if data == nil {
		return kind
	}
	return kind + " " + bytes080(t, data.(string))
}

func showContext080(x *jamq.RefineContext) any {
	o := showContext(x).(object)
	o["anchor_slot"], o["lookup_anchor_state_root"] = x.AnchorSlot, x.LookupStateRoot
	return o
}

func showReport080(x *codec.WorkReport) any {
	o := showReport(x).(object)
	o["context"] = showContext080(&x.Context)
	o["package_spec"].(object)["erasure_shards"] = x.Package.ErasureShards
	return o
}

func showGuarantee080(x *codec.Guarantee) any {
	o := showGuarantee(x).(object)
	o["report"] = showReport080(&x.Report)
	return o
}

func showExtrinsic080(x *codec.Extrinsics) any {
	o := showExtrinsic(x).(object)
	o["guarantees"] = showEach(x.Guarantees, showGuarantee080)
	return o
}

func showHistory080(x *codec.RecentHistory) any {
	return object{
		"history": showEach(x.Blocks, func(b *codec.RecentBlock) any {
			return object{
				"header_hash": b.Hash, "beefy_root": b.BeefyRoot, "state_root": b.StateRoot, "slot": b.Slot,
				"reported": showEach(b.Reported, func(l *codec.SegmentLookup) any {
					return object{"hash": l.Package, "exports_root": l.SegmentRoot}
				}),
			}
		}),
		"mmr": object{"peaks": x.Log},
	}
}

// TestVectors080 goes through every file of the vectors of 0.8.0. An unknown file fails it.
func TestVectors080(t *testing.T) {
	dir := vectorsOf(t, "jam080")
	checks := map[string]func(*testing.T, *codec.Codec, []byte, []byte){
		"refine_context":    checkVector080(func(x *codec.RefineContext) any { return showContext080((*jamq.RefineContext)(x)) }),
		"work_report":       checkVector080(func(x *codec.WorkReport) any { return showReport080(x) }),
		"guarantees":        checkVector080(func(x *codec.Guarantees) any { return showEach(*x, showGuarantee080) }),
		"extrinsic":         checkVector080(func(x *codec.Extrinsics) any { return showExtrinsic080(x) }),
		"header_plain":      checkVector080(func(x *codec.Header) any { return showHeader(x) }),
		"header_epoch_mark": checkVector080(func(x *codec.Header) any { return showHeader(x) }),
		"recent_history":    checkVector080(func(x *codec.RecentHistory) any { return showHistory080(x) }),
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
			check(t, tiny(t, codec.V080), raw, text)
		})
	}
}

func TestVectorExtrinsicHash080(t *testing.T) {
	dir := vectorsOf(t, "jam080")
	raw, err := os.ReadFile(filepath.Join(dir, "extrinsic.bin"))
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(dir, "extrinsic.hash"))
	require.NoError(t, err)
	c := tiny(t, codec.V080)
	x, err := codec.Decode[codec.Extrinsics](c, raw)
	require.NoError(t, err)
	have, err := c.ExtrinsicHash(&x)
	require.NoError(t, err)
	require.Equal(t, common.HexToHash(strings.TrimSpace(string(want))), have)
}

// In a set of three of the six validators, a report is available if all three
// assure it. Without the size of the set there is no answer.
func TestAvailableInASmallerSet(t *testing.T) {
	c := tiny(t, codec.V080)
	var b codec.Block
	for v := range uint16(3) {
		b.Extrinsic.Assurances = append(b.Extrinsic.Assurances, codec.Assurance{Bitfield: []byte{1}, Validator: v})
	}
	var err error
	b.Header.ExtrinsicHash, err = c.ExtrinsicHash(&b.Extrinsic)
	require.NoError(t, err)
	_, err = c.Imported(&b)
	require.ErrorIs(t, err, codec.ErrUnknownSet)
	for validators, available := range map[int][]jamq.CoreIndex{3: {0}, 4: {0}, 5: nil, 6: nil} {
		out, err := c.ImportedBy(&b, validators, validators)
		require.NoError(t, err)
		require.Equal(t, available, out.Available, validators)
	}
	for _, validators := range []int{-1, 0, 7} {
		_, err = c.ImportedBy(&b, validators, 6)
		require.ErrorIs(t, err, codec.ErrUnknownSet)
		_, err = c.ImportedBy(&b, 6, validators)
		require.ErrorIs(t, err, codec.ErrUnknownSet)
	}
	b.Extrinsic.Assurances = nil
	b.Header.ExtrinsicHash, err = c.ExtrinsicHash(&b.Extrinsic)
	require.NoError(t, err)
	_, err = c.Imported(&b)
	require.NoError(t, err)
}
