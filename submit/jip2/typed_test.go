package jip2

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest/jip2server"
)

// The methods that the simulated chain does not have, against answers written from JIP-2: the
// parameters are by position, and each result has its type.
func TestTypedMethods(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		var answers, asked = map[string]string{}, map[string]string{}
		n.answer = func(method string, params []json.RawMessage) string {
			raw, err := json.Marshal(params)
			if err != nil {
				return err.Error()
			}
			asked[method] = string(raw)
			return `"result":` + answers[method]
		}
		c, ctx := n.client(t), t.Context()
		block, hash := jamq.HeaderHash(lineHash(4)), common.Hash(lineHash(5))
		segment := make([]byte, segmentSize)
		segment[7] = 7
		text := base64.StdEncoding.EncodeToString(segment)
		four, five := quoted(lineHash(4)), quoted(lineHash(5))

		for _, x := range []struct {
			method, params, result string
			call                   func() (any, error)
			want                   any // nil: malformed
		}{
			{"serviceData", "[" + four + ",9]", `"AQI="`, func() (any, error) { return c.ServiceData(ctx, block, 9) }, []byte{1, 2}},
			{"serviceData", "[" + four + ",9]", `null`, func() (any, error) { return c.ServiceData(ctx, block, 9) }, []byte(nil)},
			{"serviceData", "[" + four + ",9]", `7`, func() (any, error) { return c.ServiceData(ctx, block, 9) }, nil},
			{"servicePreimage", "[" + four + ",9," + five + "]", `""`, func() (any, error) { return c.ServicePreimage(ctx, block, 9, hash) }, []byte{}},
			{"serviceRequest", "[" + four + ",9," + five + ",33]", `null`, func() (any, error) { return c.ServiceRequest(ctx, block, 9, hash, 33) }, PreimageRequest(nil)},
			{"serviceRequest", "[" + four + ",9," + five + ",33]", `[]`, func() (any, error) { return c.ServiceRequest(ctx, block, 9, hash, 33) }, PreimageRequest{}},
			{"serviceRequest", "[" + four + ",9," + five + ",33]", `[1,2,3]`, func() (any, error) { return c.ServiceRequest(ctx, block, 9, hash, 33) }, PreimageRequest{1, 2, 3}},
			{"serviceRequest", "[" + four + ",9," + five + ",33]", `[1,2,3,4]`, func() (any, error) { return c.ServiceRequest(ctx, block, 9, hash, 33) }, nil},
			{"listServices", "[" + four + "]", `[0,7,4294967295]`, func() (any, error) { return c.ListServices(ctx, block) }, []jamq.ServiceID{0, 7, 1<<32 - 1}},
			{"listServices", "[" + four + "]", `null`, func() (any, error) { return c.ListServices(ctx, block) }, nil},
			{"workReport", "[" + five + "]", `"AQI="`, func() (any, error) { return c.WorkReport(ctx, hash) }, []byte{1, 2}},
			{"workReport", "[" + five + "]", `null`, func() (any, error) { return c.WorkReport(ctx, hash) }, nil},
			{"fetchSegments", "[" + five + ",[3]]", `["` + text + `"]`, func() (any, error) { return c.Segments(ctx, hash, []uint16{3}) }, [][]byte{segment}},
			{"fetchSegments", "[" + five + ",[]]", `[]`, func() (any, error) { return c.Segments(ctx, hash, nil) }, [][]byte{}},
			{"fetchSegments", "[" + five + ",[3]]", `[]`, func() (any, error) { return c.Segments(ctx, hash, []uint16{3}) }, nil},
			{"fetchWorkPackageSegments", "[" + five + ",[1,2]]", `["` + text + `","` + text + `"]`,
				func() (any, error) { return c.WorkPackageSegments(ctx, jamq.PackageHash(hash), []uint16{1, 2}) }, [][]byte{segment, segment}},
			{"fetchWorkPackageSegments", "[" + five + ",[1]]", `["AA=="]`,
				func() (any, error) { return c.WorkPackageSegments(ctx, jamq.PackageHash(hash), []uint16{1}) }, nil},
		} {
			answers[x.method] = x.result
			have, err := x.call()
			what := fmt.Sprintf("%s: %.60s", x.method, x.result)
			require.Equal(t, x.params, asked[x.method], what)
			if x.want == nil {
				require.ErrorIs(t, err, ErrMalformed, what)
				continue
			}
			require.NoError(t, err, what)
			require.Equal(t, x.want, have, what)
		}
		require.EqualValues(t, 1, n.connections.Load())
	})
}

// A package can export 3,072 segments. Their base64 does not fit into an answer, so that
// the client asks several times.
func TestAllSegments(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startForeignNode(t)
		n.answer = func(_ string, params []json.RawMessage) string {
			var asked []uint16
			if err := json.Unmarshal(params[1], &asked); err != nil {
				return err.Error()
			}
			segments := make([][]byte, len(asked))
			for i, index := range asked {
				segments[i] = make([]byte, segmentSize)
				binary.BigEndian.PutUint16(segments[i], index)
			}
			raw, err := json.Marshal(segments)
			if err != nil {
				return err.Error()
			}
			return `"result":` + string(raw)
		}
		indices := make([]uint16, 3072)
		for i := range indices {
			indices[i] = uint16(i)
		}
		have, err := n.client(t).WorkPackageSegments(t.Context(), jamq.PackageHash{}, indices)
		require.NoError(t, err)
		require.Len(t, have, len(indices))
		for i, segment := range have {
			require.EqualValues(t, i, binary.BigEndian.Uint16(segment))
		}
	})
}

func TestSubscribeSyncStatus(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		n := startNode(t, func(*jip2server.Config) {})
		s, err := n.client(nil).SubscribeSyncStatus(t.Context())
		require.NoError(t, err)
		require.Equal(t, "Completed", update(t, s))
	})
}
