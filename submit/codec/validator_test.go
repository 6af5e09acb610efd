package codec_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/submit/codec"
)

func TestValidators(t *testing.T) {
	all := make([]codec.Validator, 3)
	for i := range all {
		all[i] = codec.Validator{Bandersnatch: [32]byte{1, byte(i)}, Ed25519: [32]byte{2}, BLS: [144]byte{3}, Metadata: [128]byte{127: 4}}
	}
	raw := codec.EncodeValidators(all)
	require.Len(t, raw, 3*codec.ValidatorSize)
	again, err := codec.DecodeValidators(raw)
	require.NoError(t, err)
	require.Equal(t, all, again)
	_, err = codec.DecodeValidators(raw[1:])
	require.ErrorIs(t, err, codec.ErrTruncated)
	none, err := codec.DecodeValidators(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// The validators of the public vectors are decoded part by part, and encoded again as they were.
func TestValidatorVectors(t *testing.T) {
	dir := os.Getenv("JAMQ_VECTORS")
	if dir == "" {
		t.Skip("JAMQ_VECTORS is not set: the public vectors are not here")
	}
	files, err := filepath.Glob(filepath.Join(dir, "jam", "state", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var state struct {
			KeyVals []struct{ Key, Value hexutil.Bytes }
		}
		require.NoError(t, json.Unmarshal(text, &state))
		found := 0
		for _, kv := range state.KeyVals {
			if kv.Key[0] < 7 || kv.Key[0] > 9 || kv.Key[1] != 0 {
				continue
			}
			validators, err := codec.DecodeValidators(kv.Value)
			require.NoError(t, err)
			require.Len(t, validators, 6)
			require.Equal(t, []byte(kv.Value), codec.EncodeValidators(validators))
			// The first one has the key of a known seed, and an endpoint with the port 40000.
			require.Equal(t, "0x4418fb8c85bb3985394a8c2756d3643457ce614546202a2f50b093d762499ace", hexutil.Encode(validators[0].Ed25519[:]))
			require.Equal(t, []byte{0x40, 0x9c}, validators[0].Metadata[16:18])
			found++
		}
		require.Equal(t, 3, found, "C(7), C(8) and C(9)")
	}
}
