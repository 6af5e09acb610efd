package jip2

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// The texts of honest answers, written from JIP-2.
var (
	zeros        = strings.Repeat("A", 43) + "="
	oneLeaf      = base64.StdEncoding.EncodeToString(make([]byte, outputSize))
	innerText    = fmt.Sprintf(`{"leaf_index":1,"leaf_count":3,"path":["%s","%s"]}`, oneLeaf, zeros)
	outerText    = fmt.Sprintf(`{"leaf_index":2,"peaks":[null,"%[1]s","%[1]s"],"mountain_path":["%[1]s","%[1]s"]}`, zeros)
	outputText   = fmt.Sprintf(`{"yield_hash":"%[1]s","block_output_root":"%[1]s","beefy_root":"%[1]s","leaf_index":2,"inner":%[2]s,"outer":%[3]s}`, zeros, innerText, outerText)
	mmrText      = fmt.Sprintf(`{"leaf":"%[1]s","beefy_root":"%[1]s","proof":%[2]s}`, zeros, outerText)
	signedText   = fmt.Sprintf(`{"validator_index":5,"signature":"%s"}`, strings.Repeat("AQID", 16))
	commitsText  = fmt.Sprintf(`{"beefy_root":"%s","commitments":[%s]}`, zeros, signedText)
	innerPath    = WBProof{LeafIndex: 1, LeafCount: 3, Path: [][]byte{make([]byte, outputSize), make([]byte, 32)}}
	outerPath    = MMRProof{LeafIndex: 2, Peaks: []*Hash{nil, {}, {}}, MountainPath: []Hash{{}, {}}}
	commitsValue = BeefyCommitments{Commitments: []BeefyCommitment{{ValidatorIndex: 5, Signature: bytes.Repeat([]byte{1, 2, 3}, 16)}}}
)

func TestProofMethods(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		answer, asked := "", ""
		n.answer = func(method string, params []json.RawMessage) string {
			raw, err := json.Marshal(params)
			if err != nil {
				return err.Error()
			}
			asked = method + string(raw)
			return answer
		}
		c, ctx, block := n.client(t), t.Context(), jamq.HeaderHash(lineHash(4))
		four := quoted(lineHash(4))
		for _, x := range []struct {
			asked, result string
			call          func() (any, error)
			want          any
		}{
			{"accumulationOutputs[" + four + "]", `"AQI="`, func() (any, error) { return c.AccumulationOutputs(ctx, block) }, []byte{1, 2}},
			{"accumulationOutputProof[" + four + ",9]", outputText, func() (any, error) { return c.AccumulationOutputProof(ctx, block, 9) },
				AccumulationOutputProof{LeafIndex: 2, Inner: innerPath, Outer: outerPath}},
			{"beefyMmrProof[" + four + ",2]", mmrText, func() (any, error) { return c.BeefyMMRProof(ctx, block, 2) }, BeefyMMRProof{Proof: outerPath}},
			{"beefyCommitments[" + four + "]", commitsText, func() (any, error) { return c.BeefyCommitments(ctx, block) }, commitsValue},
		} {
			answer = `"result":` + x.result
			have, err := x.call()
			require.NoError(t, err, x.asked)
			require.Equal(t, x.asked, asked)
			require.Equal(t, x.want, have)

			answer = `"result":null`
			_, err = x.call()
			require.ErrorIs(t, err, ErrMalformed, x.asked)

			for _, code := range []int{CodeMethodNotFound, CodeProofUnavailable, CodeLeafNotFound, CodeCommitmentsUnavailable, CodeNotFinal} {
				answer = fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, code)
				_, err = x.call()
				refused := new(Error)
				require.ErrorAs(t, err, &refused, x.asked)
				require.Equal(t, code, refused.Code)
			}
		}
		require.EqualValues(t, 1, n.connections.Load())
	})
}

// A proof with a part that is missing, null, or of another size is malformed.
func TestMalformedProofs(t *testing.T) {
	short := strings.Repeat("A", 42) + "=="
	loose := strings.Repeat("A", 42) + "B=" // base64 with bits behind the 32 bytes
	long := strings.Repeat(`"`+zeros+`",`, maxHeight) + `"` + zeros + `"`
	change := func(text, old, with string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, with, 1)
	}
	for name, x := range map[string]struct {
		into json.Unmarshaler
		good string
		bad  []string
	}{
		"WBProof": {new(WBProof), innerText, []string{
			change(innerText, `"leaf_index":1`, `"leaf_index":3`), change(innerText, `"leaf_index":1`, `"leaf_index":-1`),
			change(innerText, `"leaf_count":3`, `"leaf_count":0`), change(innerText, `"leaf_count":3`, `"leaf_count":2`),
			change(innerText, `"leaf_count":3`, `"leaf_count":4294967296`),
			change(innerText, `"`+zeros+`"`, `null`), change(innerText, `"`+zeros+`"`, `7`),
			change(innerText, zeros, short), change(innerText, zeros, loose), change(innerText, zeros, ""),
			change(innerText, `"`+zeros+`"`, `"`+zeros+`","`+zeros+`"`),
		}},
		"MMRProof": {new(MMRProof), outerText, []string{
			change(outerText, `"leaf_index":2`, `"leaf_index":18446744073709551616`), change(outerText, `"leaf_index":2`, `"leaf_index":2.5`),
			change(outerText, `[null,`, `[`), change(outerText, `[null,`, `[7,`), change(outerText, `[null,`, `["`+short+`",`),
			change(outerText, `[null,`, `["`+loose+`",`), change(outerText, `[null,`, `[`+long+`,`),
			change(outerText, `"mountain_path":["`+zeros, `"mountain_path":["`+short), change(outerText, `"mountain_path":["`+zeros+`"`, `"mountain_path":[null`),
			change(outerText, `"mountain_path":[`, `"mountain_path":["`+zeros+`",`),
		}},
		"AccumulationOutputProof": {new(AccumulationOutputProof), outputText, []string{
			change(outputText, zeros, short), change(outputText, innerText, `{}`), change(outputText, outerText, `[]`),
		}},
		"BeefyMMRProof": {new(BeefyMMRProof), mmrText, []string{change(mmrText, zeros, loose), change(mmrText, outerText, `{}`)}},
		"BeefyCommitments": {new(BeefyCommitments), commitsText, []string{
			change(commitsText, zeros, short), change(commitsText, signedText, `null`), change(commitsText, signedText, `{}`),
			change(commitsText, `"validator_index":5`, `"validator_index":65536`), change(commitsText, `"validator_index":5`, `"validator_index":-1`),
			change(commitsText, `AQID"`, `"`), change(commitsText, `AQID"`, `AQIDAQID"`), change(commitsText, `AQID"`, `AQ=="`),
			change(commitsText, `{"b`, strings.Repeat(" ", maxCommitments)+`{"b`),
		}},
		"BeefyCommitment": {new(BeefyCommitment), signedText, nil},
	} {
		require.NoError(t, x.into.UnmarshalJSON([]byte(x.good)), name)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(x.good), &fields))
		for field, value := range fields {
			body := change(x.good, `"`+field+`":`+string(value), `"`+field+`":null`)
			x.bad = append(x.bad, body, change(body, `"`+field+`"`, `"other"`))
		}
		for _, bad := range append(x.bad, `null`, `7`, `[]`, `""`, `{}`) {
			require.ErrorIs(t, x.into.UnmarshalJSON([]byte(bad)), ErrMalformed, "%s: %.300s", name, bad)
		}
	}
}

// Whatever a node answers is malformed, or a proof that is written as it was read.
func FuzzProofShapes(f *testing.F) {
	for _, seed := range []string{outputText, mmrText, commitsText} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, shape := range []func() json.Unmarshaler{
			func() json.Unmarshaler { return new(AccumulationOutputProof) },
			func() json.Unmarshaler { return new(BeefyMMRProof) },
			func() json.Unmarshaler { return new(BeefyCommitments) },
		} {
			value, again := shape(), shape()
			if err := value.UnmarshalJSON(raw); err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatal(err)
				}
				continue
			}
			text, err := json.Marshal(value)
			if err == nil {
				err = again.UnmarshalJSON(text)
			}
			if err != nil || !reflect.DeepEqual(value, again) {
				t.Fatalf("%s is written as %s: %v", raw, text, err)
			}
		}
	})
}
