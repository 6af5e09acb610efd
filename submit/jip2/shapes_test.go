package jip2

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

func TestHash(t *testing.T) {
	h := Hash{1, 2, 3}
	raw, err := json.Marshal(BlockDescriptor{HeaderHash: h, Slot: 7})
	require.NoError(t, err)
	require.JSONEq(t, `{"header_hash":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","slot":7}`, string(raw))
	var back BlockDescriptor
	require.NoError(t, json.Unmarshal(raw, &back))
	require.Equal(t, h, back.HeaderHash)
	for _, bad := range []string{"", "AQID", "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "!", "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB="} {
		require.ErrorIs(t, back.HeaderHash.UnmarshalText([]byte(bad)), ErrMalformed, bad)
	}
}

func TestParameters(t *testing.T) {
	p, err := DecodeParameters([]byte(`{"V1":{"core_count":2,"epoch_period":12,"max_accumulate_gas":10000000,"max_refine_gas":1000000000,
		"block_gas_limit":20000000,"recent_block_count":8,"max_work_items":16,"max_dependencies":8,"max_lookup_anchor_age":24,"auth_window":8,
		"slot_period_sec":6,"auth_queue_len":80,"rotation_period":4,"max_extrinsics":128,"availability_timeout":5,"val_count":6,
		"max_input":13791360,"basic_piece_len":4,"segment_piece_count":684,"tickets_attempts_number":3}}`))
	require.NoError(t, err)
	spec, err := p.Spec("tiny")
	require.NoError(t, err)
	require.Equal(t, jamq.Tiny(), spec)
	_, err = DecodeParameters([]byte(`{"V2":{}}`))
	require.ErrorIs(t, err, ErrUnknownVersion)
	_, err = DecodeParameters([]byte(`[]`))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = new(Parameters).Spec("none")
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
}

func TestWorkPackageStatus(t *testing.T) {
	hash := `"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`
	s, err := DecodeWorkPackageStatus([]byte(`{"Reportable":{"remaining_blocks":3}}`))
	require.NoError(t, err)
	require.Equal(t, uint32(3), s.Reportable.RemainingBlocks)
	s, err = DecodeWorkPackageStatus([]byte(`{"Ready":{"reported_in":{"header_hash":` + hash + `,"slot":7},"core":1,"report_hash":` + hash + `,"ready_in":{"header_hash":` + hash + `,"slot":8}}}`))
	require.NoError(t, err)
	require.Equal(t, jamq.Slot(8), s.Ready.ReadyIn.Slot)
	require.Equal(t, jamq.CoreIndex(1), s.Ready.Core)
	block := `{"header_hash":` + hash + `,"slot":7}`
	for _, bad := range []string{
		`{}`, `null`, `7`, `{"Failed":"a","Reportable":{"remaining_blocks":1}}`, `{"Failed":7}`, `{"Failed":null}`, `{"Accumulated":{}}`,
		`{"Reportable":{}}`, `{"Reportable":{"remaining_blocks":null}}`, `{"Reportable":{"remaining_blocks":-1}}`, `{"Reported":{}}`,
		`{"Reported":{"reported_in":` + block + `,"core":-1,"report_hash":` + hash + `}}`,
		`{"Reported":{"reported_in":{"slot":7},"core":1,"report_hash":` + hash + `}}`,
		`{"Reported":{"reported_in":` + block + `,"core":1}}`,
		`{"Ready":{"reported_in":` + block + `,"core":1,"report_hash":` + hash + `}}`,
	} {
		_, err := DecodeWorkPackageStatus([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, bad)
	}
}

func FuzzDecodeWorkPackageStatus(f *testing.F) {
	f.Add([]byte(`{"Failed":"gone"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := DecodeWorkPackageStatus(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeWorkPackageStatus(again); err != nil {
			t.Fatalf("%s decodes, and what it encodes to does not: %v", raw, err)
		}
	})
}
