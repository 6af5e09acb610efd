package proof

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// vectorFolder is where public conformance data is. It is not part of this module.
func vectorFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("JAMQ_VECTORS")
	if folder == "" {
		t.Skip("JAMQ_VECTORS is not set: the public vectors are not here")
	}
	return filepath.Join(folder, "jam")
}

// readVectors decodes a value of each file that matches.
func readVectors[T any](t *testing.T, pattern string) map[string]T {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectorFolder(t), pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no files match jam/%s", pattern)
	out := map[string]T{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var v T
		require.NoError(t, json.Unmarshal(data, &v), file)
		out[filepath.Base(file)] = v
	}
	return out
}

// The trie on two whole states of a real chain: the root, where things lie, and a proof of every
// key.
func TestStateVectors(t *testing.T) {
	type state struct {
		StateRoot common.Hash `json:"state_root"`
		KeyVals   []struct{ Key, Value hexutil.Bytes }
	}
	states := readVectors[state](t, "state/*.json")
	require.Len(t, states, 2)
	for file, s := range states {
		var trie *statetrie.Trie
		for _, kv := range s.KeyVals {
			trie = trie.Set(statetrie.Key(kv.Key), kv.Value)
		}
		require.Equal(t, s.StateRoot, trie.Root(), file)
		for chapter := uint8(1); chapter <= 16; chapter++ {
			_, ok := trie.Get(statetrie.ChapterKey(chapter))
			require.True(t, ok, "%s: C(%d)", file, chapter)
		}
		_, ok := trie.Get(statetrie.ServiceKey(0))
		require.True(t, ok, file)
		preimages := 0
		for i, kv := range s.KeyVals {
			if stored, ok := trie.Get(statetrie.PreimageKey(0, blake2b.Sum256(kv.Value))); ok {
				require.Equal(t, string(kv.Value), string(stored))
				preimages++
			}
			key, nodes := statetrie.Key(kv.Key), trie.Prove(statetrie.Key(kv.Key))
			require.NoError(t, statetrie.Verify(s.StateRoot, key, kv.Value, nodes), file)
			require.ErrorIs(t, statetrie.Verify(s.StateRoot, key, kv.Value, nodes[1:]), ErrState)
			other := s.KeyVals[(i+1)%len(s.KeyVals)]
			require.ErrorIs(t, statetrie.Verify(s.StateRoot, statetrie.Key(other.Key), other.Value, nodes), ErrState)
		}
		require.Positive(t, preimages, "%s: no value lies where its preimage key says", file)
		absent := statetrie.StorageKey(12345, []byte("nothing"))
		require.NoError(t, statetrie.VerifyAbsent(s.StateRoot, absent, trie.Prove(absent)))
	}
}

func TestLogVectors(t *testing.T) {
	type beta struct {
		Beta struct {
			History []struct {
				BeefyRoot common.Hash `json:"beefy_root"`
			}
			MMR struct{ Peaks []*common.Hash }
		}
	}
	type vector struct {
		Input struct {
			AccumulateRoot common.Hash `json:"accumulate_root"`
		}
		PreState  beta `json:"pre_state"`
		PostState beta `json:"post_state"`
	}
	for file, v := range readVectors[vector](t, "history/*.json") {
		log := NewLog(v.PreState.Beta.MMR.Peaks)
		log.Append(v.Input.AccumulateRoot)
		post := v.PostState.Beta
		require.Equal(t, post.MMR.Peaks, log.Peaks(), file)
		require.Equal(t, post.History[len(post.History)-1].BeefyRoot, log.SuperPeak(), file)
	}
}

// A hundred blocks of a real chain: the outputs in C(16) make the leaf that each adds to the log in
// C(3), and every leaf is proved.
func TestTrace(t *testing.T) {
	type chapters struct{ Chapters map[string]hexutil.Bytes }
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	history := func(s chapters) codec.RecentHistory {
		h, err := codec.Decode[codec.RecentHistory](c, s.Chapters["C3"])
		require.NoError(t, err)
		return h
	}
	file, err := os.Open(filepath.Join(vectorFolder(t), "trace-storage_light.jsonl"))
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	var leaves []common.Hash
	blocks, yielding := 0, 0
	for lines.Scan() {
		var step struct{ Pre, Post chapters }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &step))
		pre, post := history(step.Pre), history(step.Post)
		outputs, err := DecodeOutputs(step.Post.Chapters["C16"])
		require.NoError(t, err)
		require.Equal(t, []byte(step.Post.Chapters["C16"]), EncodeOutputs(outputs))
		log := NewLog(pre.Log)
		log.Append(OutputRoot(outputs))
		require.Equal(t, post.Log, log.Peaks())
		peak := post.Blocks[len(post.Blocks)-1].BeefyRoot
		require.Equal(t, peak, log.SuperPeak())
		leaves = append(leaves, OutputRoot(outputs))
		blocks++
		yielding += min(1, len(outputs))
		if whole := new(Log); blocks%10 == 0 {
			for _, l := range leaves {
				whole.Append(l)
			}
			require.Equal(t, peak, whole.SuperPeak(), "the trace begins with the first block: these are all leaves")
			for i, l := range leaves {
				p, err := ProveLog(leaves, i)
				require.NoError(t, err)
				require.NoError(t, VerifyLog(peak, l, p))
			}
		}
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 100, blocks)
	t.Logf("%d of %d blocks have outputs", yielding, blocks)
}
