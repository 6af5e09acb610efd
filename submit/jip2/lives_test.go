package jip2

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/bubble"
)

// life describes a package on the straight chain: the slots in which it is reported, becomes
// available and is accumulated.
type life struct {
	pkg                            jamq.PackageHash
	anchor, lookup                 jamq.Slot
	needs                          []jamq.PackageHash
	core                           int
	reported, available, collected jamq.Slot
}

// Each of these packages, except the fourth, is reported or accumulated in the last block
// that can do so: the first one by the age of its anchor (D2) and the epoch (D6), the
// second one by its prerequisite (D4), the third one by its lookup anchor (D3), and the
// fifth one by the fourth, its prerequisite, which may be settled by then (D4).
var lives = []life{
	{pkg: jamq.PackageHash{1}, anchor: 9, lookup: 3, reported: 17, available: 21, collected: 33},
	{pkg: jamq.PackageHash{2}, anchor: 18, lookup: 3, needs: []jamq.PackageHash{{1}}, reported: 25, available: 26, collected: 34},
	{pkg: jamq.PackageHash{3}, anchor: 18, lookup: 0, core: 1, reported: 24, available: 25, collected: 34},
	{pkg: jamq.PackageHash{4}, anchor: 9, lookup: 3, core: 1, reported: 10, available: 11, collected: 12},
	{pkg: jamq.PackageHash{5}, anchor: 12, lookup: 3, needs: []jamq.PackageHash{{4}}, core: 1, reported: 18, available: 20, collected: 22},
}

// status is the true status after a block, and value the true value of the service.
func (l *life) status(at jamq.Slot) string {
	report := fmt.Sprintf(`"reported_in":%s,"core":%d,"report_hash":%s`, lineBlock(l.reported), l.core, quoted(Hash(l.pkg)))
	switch {
	case at >= l.available:
		return `"result":{"Ready":{` + report + `,"ready_in":` + lineBlock(l.available) + `}}`
	case at >= l.reported:
		return `"result":{"Reported":{` + report + `}}`
	}
	return canBeReported
}

func (l *life) value(at jamq.Slot) string {
	if at >= l.collected {
		return `"result":"AQ=="`
	}
	return `"result":null`
}

// lived is a feed and a node that tells the lives, unless lie returns another answer. nth is how
// often the node was asked the same before.
type lived struct {
	*straight
	feed  *Feed
	sink  *viewSink
	asked map[string]int
	lie   func(method string, at jamq.Slot, nth int) string
	// behind is by how many blocks finality is behind the head.
	behind jamq.Slot
}

func startLives(t *testing.T) *lived {
	t.Helper()
	s, c := startStraight(t, 9, 5)
	l := &lived{straight: s, asked: map[string]int{}, behind: 6, lie: func(string, jamq.Slot, int) string { return "" }}
	var err error
	service := Service{ID: 9, Key: func(pkg jamq.PackageHash) []byte { return pkg[:] }, Taken: marks.Taken}
	l.feed, err = OpenFeed(t.Context(), c, FeedConfig{Service: service, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(3)), Slot: 3}})
	require.NoError(t, err)
	l.sink = newViewSink(t, l.feed)
	s.override = func(method string, params []json.RawMessage) string {
		var at, pkg Hash
		var key []byte
		switch method {
		case "workPackageStatus":
			_, _ = json.Unmarshal(params[0], &at), json.Unmarshal(params[1], &pkg)
		case "serviceValue":
			_, _ = json.Unmarshal(params[0], &at), json.Unmarshal(params[2], &key)
			copy(pkg[:], key)
		default:
			return ""
		}
		question := fmt.Sprint(method, at, pkg)
		nth := l.asked[question]
		l.asked[question]++
		if told := l.lie(method, lineSlot(at), nth); told != "" {
			return told
		}
		of := &lives[pkg[0]-1]
		if method == "serviceValue" {
			return of.value(lineSlot(at))
		}
		return of.status(lineSlot(at))
	}
	return l
}

// advance lets the chain grow to a head. The host watches the packages whose anchors are delivered.
func (l *lived) advance(t *testing.T, head jamq.Slot) error {
	t.Helper()
	l.head, l.final = head, max(5, head-l.behind)
	if err := l.feed.catchUp(t.Context(), l.sink); err != nil {
		return err
	}
	for _, x := range lives {
		at := jamq.HeaderHash(lineHash(x.anchor))
		if _, err := l.sink.view.Status(x.pkg); err != nil && l.feed.tree.Get(at) != nil {
			l.feed.Watch(x.pkg, jamq.RefineContext{Anchor: at, AnchorSlot: x.anchor, LookupAnchorSlot: x.lookup, Prerequisites: x.needs})
			_, err := l.sink.view.Watch(x.pkg, chainview.Package{Anchor: at, LookupAnchorSlot: x.lookup, Prerequisites: x.needs})
			require.NoError(t, err)
		}
		if status, err := l.sink.view.Status(x.pkg); err == nil {
			require.Equal(t, anchor.Alive, status.Dead, "package %s is alive at slot %d", x.pkg, head)
		}
	}
	return nil
}

// live lets the chain grow by some blocks at a time, until all packages are accumulated. Block 18,
// which is an anchor, must be among the heads.
func (l *lived) live(t *testing.T, blocks jamq.Slot) {
	t.Helper()
	require.NoError(t, l.advance(t, 9))
	for head := 9/blocks*blocks + blocks; head < 36+blocks; head += blocks {
		require.NoError(t, l.advance(t, head))
	}
	for _, x := range lives {
		status, err := l.sink.view.Status(x.pkg)
		require.NoError(t, err)
		require.NotZero(t, status.Accumulated.Slot)
	}
	require.Empty(t, l.sink.view.Contradictions())
}

// A node gives one wrong answer about each package at one block, as its first or its second answer.
// No package looks dead and all are accumulated, even if the node has only the state of its head.
func TestOneWrongAnswerAboutEachPackage(t *testing.T) {
	report := `"reported_in":` + lineBlock(10) + `,"core":1,"report_hash":` + quoted(Hash{99})
	lies := map[string]struct{ method, answer string }{
		"failed":   {"workPackageStatus", `"result":{"Failed":"x"}`},
		"hidden":   {"workPackageStatus", canBeReported},
		"reported": {"workPackageStatus", `"result":{"Reported":{` + report + `}}`},
		"ready":    {"workPackageStatus", `"result":{"Ready":{` + report + `,"ready_in":` + lineBlock(10) + `}}`},
		"taken":    {"serviceValue", `"result":"AQ=="`},
		"no value": {"serviceValue", `"result":null`},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			noted := 0
			for _, v := range []struct {
				blocks jamq.Slot // by which the chain grows between two calls
				behind jamq.Slot
				nth    int
				pruned bool
			}{{1, 6, 0, false}, {1, 1, 0, false}, {2, 6, 0, false}, {3, 2, 0, false}, {3, 6, 1, false}, {2, 6, 0, true}} {
				for _, slot := range []jamq.Slot{10, 12, 17, 18, 21, 24, 25, 33} {
					bubble.Run(t, func(t *testing.T) {
						l := startLives(t)
						l.behind = v.behind
						l.lie = func(method string, at jamq.Slot, nth int) string {
							switch {
							case v.pruned && at < l.head:
								return `"error":{"code":1,"message":"pruned"}`
							case method == lie.method && at == slot && nth == v.nth:
								return lie.answer
							}
							return ""
						}
						l.live(t, v.blocks)
						noted += int(l.feed.Health().Contradictions)
					})
				}
			}
			require.Positive(t, noted, "contradictions")
		})
	}
}
