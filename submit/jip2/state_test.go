package jip2

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// A client reads the state of a node, follows a value, and verifies proofs against the state root.
func TestState(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		f := follow(t, nil)
		f.step(4)
		f.catchUp()
		count := statetrie.StorageKey(9, service.CountKey())
		sub, err := f.client.SubscribeStateValue(t.Context(), count, false)
		require.NoError(t, err)
		before := nextUpdate(t, sub)
		require.NoError(t, before.Err)
		f.send(1, 0, "one")
		f.step(6)
		f.catchUp()
		u := nextUpdate(t, sub)
		require.NoError(t, u.Err)
		require.NotEqual(t, before.Value.Value, u.Value.Value)

		best := f.sink.view.Best().Hash
		var state *statetrie.Trie
		f.chain.View(func(c *jamtest.Chain) { state, err = c.State(best) })
		require.NoError(t, err)
		root, err := f.client.StateRoot(t.Context(), best)
		require.NoError(t, err)
		require.Equal(t, state.Root(), common.Hash(root))
		want, present := state.Get(count)
		require.True(t, present)
		have, err := f.client.StateValue(t.Context(), best, count)
		require.NoError(t, err)
		require.Equal(t, want, have)
		absent := statetrie.StorageKey(9, []byte("no such key"))
		have, err = f.client.StateValue(t.Context(), best, absent)
		require.NoError(t, err)
		require.Nil(t, have)

		q := statetrie.Query{Keys: []statetrie.Key{count, absent}, Ranges: []statetrie.KeyRange{statetrie.PrefixRange([]byte{255})}}
		if bytes.Compare(count[:], absent[:]) > 0 {
			q.Keys[0], q.Keys[1] = absent, count
		}
		p, err := f.client.StateProof(t.Context(), best, q, 1<<20)
		require.NoError(t, err)
		require.True(t, p.Complete)
		o, err := p.Open(common.Hash(root), q)
		require.NoError(t, err)
		have, present, err = o.Get(count)
		require.NoError(t, err)
		require.True(t, present)
		require.Equal(t, want, have)
		_, present, err = o.Get(absent)
		require.NoError(t, err)
		require.False(t, present)
		nodes, err := o.Prove(count)
		require.NoError(t, err)
		require.NoError(t, statetrie.Verify(common.Hash(root), count, want, nodes), "the form of documents")
		_, err = p.Open(common.Hash{1}, q)
		require.ErrorIs(t, err, statetrie.ErrProof)

		// A whole state in small parts.
		all := statetrie.PrefixRange(nil)
		parts, entries := 0, 0
		for done := false; !done; parts++ {
			q := statetrie.Query{Ranges: []statetrie.KeyRange{all}}
			p, err := f.client.StateProof(t.Context(), best, q, 100)
			require.NoError(t, err)
			o, err := p.Open(common.Hash(root), q)
			require.NoError(t, err)
			last := all.Last
			if done = p.Complete; !done {
				last = p.ProvenThrough
			}
			part, err := o.Entries(all.First, last)
			require.NoError(t, err)
			for _, e := range part {
				value, present := state.Get(e.Key)
				require.True(t, present && bytes.Equal(value, e.Value))
			}
			entries += len(part)
			all.First = next(last)
		}
		require.Greater(t, parts, 3)
		require.Greater(t, entries, parts-1)

		for _, bad := range []statetrie.Query{{Keys: []statetrie.Key{count, count}}, {Known: 9}} {
			_, err = f.client.StateProof(t.Context(), best, bad, 1)
			require.ErrorIs(t, err, statetrie.ErrQuery)
		}
		_, err = f.client.StateValue(t.Context(), jamq.HeaderHash{1}, count)
		refused := new(Error)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, CodeBlockUnavailable, refused.Code)
	})
}

// next returns the key after k.
func next(k statetrie.Key) statetrie.Key {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			break
		}
	}
	return k
}

// The text of a call, and answers that are no proof.
func TestStateProofText(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		answer, asked := "", ""
		n.answer = func(method string, params []json.RawMessage) string {
			raw, err := json.Marshal(params)
			if err != nil {
				return err.Error()
			}
			asked = method + string(raw)
			return `"result":` + answer
		}
		c, text := n.client(t), func(k statetrie.Key) string { return base64.StdEncoding.EncodeToString(k[:]) }
		one, all := statetrie.ChapterKey(1), statetrie.PrefixRange([]byte{2})
		q := statetrie.Query{Keys: []statetrie.Key{one}, Ranges: []statetrie.KeyRange{all}, Known: statetrie.KnownEntries}
		answer = `{"proof":"AIA=","complete":false,"proven_through":"` + text(one) + `"}`
		p, err := c.StateProof(t.Context(), jamq.HeaderHash(lineHash(4)), q, 77)
		require.NoError(t, err)
		require.Equal(t, StateProof{Proof: []byte{0, 0x80}, ProvenThrough: one}, p)
		want := fmt.Sprintf(`stateProof[%s,["%s"],[["%s","%s"]],"keys_and_values",77]`, quoted(lineHash(4)), text(one), text(all.First), text(all.Last))
		require.Equal(t, want, asked)
		for _, answer = range []string{
			`null`, `{}`, `{"proof":"AIA="}`, `{"complete":true}`, `{"proof":"AIA=","complete":false}`, `{"proof":"AIA=","complete":false,"proven_through":"AAAA"}`,
			`{"proof":"AIA=","complete":true,"proven_through":"` + text(one) + `"}`, `{"proof":"!","complete":true}`,
			`{"proof":"AIA=","complete":false,"proven_through":"` + strings.Repeat("AAAA", 31) + `"}`,
		} {
			_, err := c.StateProof(t.Context(), jamq.HeaderHash(lineHash(4)), q, 77)
			require.ErrorIs(t, err, ErrMalformed, answer)
		}
	})
}
