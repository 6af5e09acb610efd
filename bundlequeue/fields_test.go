package bundlequeue

import (
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/internal/minheap"
	"github.com/jamq/jamq/internal/wire"
)

// TestEveryFieldIsSaved gives every field of a bundle, its open request, its
// trouble and its version a distinct value, and reads the values back from a
// snapshot. A new field must be set here.
func TestEveryFieldIsSaved(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	s.answer()
	q := s.q
	it, v := q.items[1], q.items[1].versions[0]
	point := func(height uint64) anchor.Point {
		return anchor.Point{Hash: jamq.HeaderHash{byte(height)}, Height: height, Slot: jamq.Slot(height + 100)}
	}
	since := point(1)
	it.commitment[0], it.awaited = 2, &common.Hash{22}
	it.deadSince, it.lastVersion, it.notBefore, it.queuedAt = &since, 3, 4, 5
	it.trouble = &trouble{
		failed: 6, useless: 7, reason: anchor.LookupExpired,
		untilBest: jamq.HeaderHash{8}, untilFinal: jamq.HeaderHash{9}, givenUp: "a reason",
	}
	it.request = &request{ticket: 10, version: 11, minAnchor: point(12), reorged: true, prerequisites: []jamq.PackageHash{{13}}, best: point(14), final: jamq.HeaderHash{15}}
	q.builds[10] = it
	v.sent, v.accepted, v.refused, v.wasDead, v.lost, v.rivalSeen = true, true, true, true, true, true
	v.number, v.attempts, v.failures = 15, 16, 17
	v.firstSend, v.lastSend, v.nextSend, v.sentHeight = 18, 19, 20, 21
	q.buildTimes = []int{1, 2, 3}
	q.base, q.spent = common.Hash{23}, []spent{{common.Hash{24}, 25}}

	r := wire.NewReader(q.appendBody(nil))
	back := read(q.cfg, r)
	require.NoError(t, r.Done())
	again, w := back.items[1], back.items[1].versions[0]
	require.Same(t, again, back.builds[10])
	require.Same(t, w, back.sends[v.ticket])
	require.Equal(t, q.buildTimes, back.buildTimes)
	require.Equal(t, q.base, back.base)
	require.Equal(t, q.spent, back.spent)
	require.Equal(t, map[common.Hash]struct{}{{2}: {}, {23}: {}, {24}: {}}, back.commitments)
	require.Equal(t, q.appendBody(nil), back.appendBody(nil))

	// The fields that a snapshot does not hold are derived from the rest.
	derived := func(it *item, v *version) (item, version) {
		i, w := *it, *v
		i.versions, i.turn, i.touched, i.waiting = nil, minheap.Entry[int64, *item]{}, false, false
		w.item, w.trace = nil, nil
		return i, w
	}
	wantItem, wantVersion := derived(it, v)
	haveItem, haveVersion := derived(again, w)
	require.Equal(t, wantItem, haveItem)
	require.Equal(t, wantVersion, haveVersion)
	requireAllSet(t, *it.trouble)
	requireAllSet(t, *it.request)
	requireAllSet(t, wantVersion, "item", "trace")
	requireAllSet(t, wantItem, "versions", "turn", "touched", "waiting")
}

// requireAllSet fails if a field is zero, apart from those with the given names.
func requireAllSet(t *testing.T, of any, except ...string) {
	t.Helper()
	value := reflect.ValueOf(of)
	for i := range value.NumField() {
		if name := value.Type().Field(i).Name; !slices.Contains(except, name) {
			require.False(t, value.Field(i).IsZero(), "%T.%s is not set", of, name)
		}
	}
}
