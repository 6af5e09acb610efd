package jip2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/feed"
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
	p, err := decodeParameters([]byte(`{"V1":{"core_count":2,"epoch_period":12,"max_accumulate_gas":10000000,"max_refine_gas":1000000000,
		"block_gas_limit":20000000,"recent_block_count":8,"max_work_items":16,"max_dependencies":8,"max_lookup_anchor_age":24,"auth_window":8,
		"slot_period_sec":6,"auth_queue_len":80,"rotation_period":4,"max_extrinsics":128,"availability_timeout":5,"val_count":6,
		"max_input":13791360,"basic_piece_len":4,"segment_piece_count":684,"tickets_attempts_number":3}}`))
	require.NoError(t, err)
	spec, err := p.Spec("tiny")
	require.NoError(t, err)
	require.Equal(t, jamq.Tiny(), spec)
	p.ValCount = 0 // as from Gray Paper 0.8.0 on
	spec, err = p.Spec("tiny")
	require.NoError(t, err)
	require.Equal(t, jamq.Tiny(), spec)
	_, err = decodeParameters([]byte(`{"V2":{}}`))
	require.ErrorIs(t, err, ErrUnknownVersion)
	_, err = decodeParameters([]byte(`[]`))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = new(Parameters).Spec("none")
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
}

func TestWorkPackageStatus(t *testing.T) {
	hash := `"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`
	s, err := decodeWorkPackageStatus([]byte(`{"Reportable":{"remaining_blocks":3}}`))
	require.NoError(t, err)
	require.Equal(t, uint32(3), s.Reportable.RemainingBlocks)
	s, err = decodeWorkPackageStatus([]byte(`{"Ready":{"reported_in":{"header_hash":` + hash + `,"slot":7},"core":1,"report_hash":` + hash + `,"ready_in":{"header_hash":` + hash + `,"slot":8}}}`))
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
		_, err := decodeWorkPackageStatus([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, bad)
	}
}

func FuzzDecodeWorkPackageStatus(f *testing.F) {
	f.Add([]byte(`{"Failed":"gone"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := decodeWorkPackageStatus(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeWorkPackageStatus(again); err != nil {
			t.Fatalf("%s decodes, and what it encodes to does not: %v", raw, err)
		}
	})
}

// An answer of many unknown fields is refused before it takes several times its
// size of memory.
func TestHostileShapes(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `"%x":1,`, i)
	}
	raw := []byte("{" + b.String() + `"Failed":{},"V1":{}}`)
	for name, decode := range map[string]func() error{
		"status":     func() error { _, err := decodeWorkPackageStatus(raw); return err },
		"parameters": func() error { _, err := decodeParameters(raw); return err },
		"descriptor": func() error { return new(BlockDescriptor).UnmarshalJSON(raw) },
		"request":    func() error { return new(PreimageRequest).UnmarshalJSON(raw) },
		"proof":      func() error { return new(AccumulationOutputProof).UnmarshalJSON(raw) },
		"signatures": func() error { return new(BeefyCommitments).UnmarshalJSON(raw) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.ErrorIs(t, decode(), ErrMalformed, name)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(raw)/4), name)
	}
	var update ChainSubUpdate[[]byte] // a value can be large
	value, err := json.Marshal(ChainSubUpdate[[]byte]{Slot: 3, Value: make([]byte, 2*maxShape)})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(value, &update))
	require.Len(t, update.Value, 2*maxShape)
}

// A node that sends malformed notifications or errors without end does not fill
// the log.
func TestLogIsLimited(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := DefaultConfig("ws://127.0.0.1:1")
		s := &stream{close: func() {}, offer: func(part, error) {}}
		c := &conn{cfg: &cfg, log: slog.New(slog.NewTextHandler(&log, nil)), streams: map[string]*stream{"7": s}, malformed: new(feed.Seldom)}
		for i := range 1_000 { // 100 s
			for _, m := range []string{`{"method":"x","params":[]}`, `[5]`, fmt.Sprintf(`{"params":{"subscription":7,"error":"%d"}}`, i)} {
				require.NoError(t, c.take([]byte(m)))
			}
			time.Sleep(time.Second / 10)
		}
		require.Equal(t, 2*2, strings.Count(log.String(), "\n"), log.String())
	})
}

// An id is the same as a number and as a string.
func TestIDsAsText(t *testing.T) {
	cfg := DefaultConfig("ws://127.0.0.1:1")
	delivered := 0
	s := &stream{close: func() {}, offer: func(part, error) { delivered++ }}
	c := &conn{cfg: &cfg, log: slog.New(slog.DiscardHandler), streams: map[string]*stream{}, pending: map[uint64]*request{}}
	c.pending[1] = &request{answer: make(chan answered, 1), stream: s}
	require.NoError(t, c.take([]byte(`{"id":"1","result":"7"}`)))
	require.Empty(t, c.pending)
	require.NoError(t, c.take([]byte(`{"params":{"subscription":7,"result":1}}`)))
	require.NoError(t, c.take([]byte(`{"params":["7",1]}`)))
	require.Equal(t, 2, delivered)
}
