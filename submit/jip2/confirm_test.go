package jip2

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit"
)

// effectSink notes which blocks do something to a package.
type effectSink struct {
	*viewSink
	told []string
}

func (s *effectSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	for what, n := range map[string]int{"reported": len(b.Reported), "available": len(b.Available), "condemned": len(b.Condemned), "accumulated": len(b.Accumulated)} {
		if n > 0 {
			s.told = append(s.told, fmt.Sprintf("%s in %d", what, b.Slot))
		}
	}
	return s.viewSink.Import(ctx, b, best)
}

// TestOneWrongStatus lets a node give one wrong answer about a package, among right ones. The
// queue neither gives the package up nor takes it for accumulated. If it would have, the node is
// named as one that contradicts itself.
func TestOneWrongStatus(t *testing.T) {
	status := func(name string, reportedIn jamq.Slot, more string) string {
		return fmt.Sprintf(`"result":{%q:{"reported_in":%s,"core":1,"report_hash":%s%s}}`, name, lineBlock(reportedIn), quoted(Hash{7}), more)
	}
	const failed, untaken, accumulated = `"result":{"Failed":"x"}`, `"result":null`, `"result":"AQ=="`
	for name, x := range map[string]struct {
		reported jamq.Slot // in which the package is reported
		method   string
		slot     jamq.Slot // after whose block the answer is wrong
		answer   string
		late     jamq.Slot // by which the feed learns of the report late
		queued   jamq.Slot // for how many more slots it is in the ready queue
		silent   bool      // the answer is ignored anyway
	}{
		"failed":                       {reported: 10, method: "workPackageStatus", slot: 11, answer: failed},
		"not reported yet":             {reported: 10, method: "workPackageStatus", slot: 10, answer: canBeReported, late: 1, silent: true},
		"not reported, anchor expires": {reported: 16, method: "workPackageStatus", slot: 16, answer: canBeReported},
		"reportable again":             {reported: 10, method: "workPackageStatus", slot: 11, answer: canBeReported},
		"ready too early":              {reported: 10, method: "workPackageStatus", slot: 11, answer: status("Ready", 10, `,"ready_in":`+lineBlock(11))},
		"reported too early":           {reported: 10, method: "workPackageStatus", slot: 9, answer: status("Reported", 9, "")},
		"another report":               {reported: 10, method: "workPackageStatus", slot: 10, answer: `"result":{"Reported":{"reported_in":` + lineBlock(10) + `,"core":0,"report_hash":` + quoted(Hash{8}) + `}}`},
		"accumulated too early":        {reported: 10, method: "serviceValue", slot: 11, answer: accumulated},
		"leaves the ready queue":       {reported: 10, method: "serviceValue", slot: 24, answer: untaken, queued: 10},
		"not accumulated any more":     {reported: 10, method: "serviceValue", slot: 15, answer: untaken, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				s, c := startStraight(t, 8, 4)
				feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(3)), Slot: 3}})
				require.NoError(t, err)
				sink := &effectSink{viewSink: newViewSink(t, feed)}
				feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(8)), LookupAnchorSlot: 3})
				lied := false
				s.override = func(method string, params []json.RawMessage) string {
					var h Hash
					if method != "workPackageStatus" && method != "serviceValue" || json.Unmarshal(params[0], &h) != nil {
						return ""
					}
					slot := lineSlot(h)
					if method == x.method && slot == x.slot && !lied {
						lied = true
						return x.answer
					}
					switch {
					case method == "serviceValue" && slot >= x.reported+4+x.queued:
						return accumulated
					case method == "serviceValue":
						return untaken
					case slot < x.reported:
						return canBeReported
					case slot < x.reported+2:
						return status("Reported", x.reported, "")
					}
					return status("Ready", x.reported, `,"ready_in":`+lineBlock(x.reported+2))
				}
				for head := jamq.Slot(8); head < 30; head++ {
					s.head, s.final = head, head-4
					require.NoError(t, feed.catchUp(t.Context(), sink))
				}
				require.True(t, lied)
				require.Equal(t, []string{
					fmt.Sprint("reported in ", x.reported+x.late), fmt.Sprint("available in ", x.reported+2), fmt.Sprint("accumulated in ", x.reported+4+x.queued),
				}, sink.told)
				require.Equal(t, !x.silent, feed.Health().Contradictions > 0)
			})
		})
	}
}

// Without two equal answers about a package nothing is delivered, and the feed tries again. If the
// node forgets the state meanwhile, the answer follows from a later block.
func TestStatusesThatNeverAgree(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		s, c := startStraight(t, 9, 5)
		feed, err := OpenFeed(t.Context(), c, FeedConfig{Service: marks, Root: jamq.Block{Hash: jamq.HeaderHash(lineHash(3)), Slot: 3}})
		require.NoError(t, err)
		sink := &effectSink{viewSink: newViewSink(t, feed)}
		require.NoError(t, feed.catchUp(t.Context(), sink))
		feed.Watch(jamq.PackageHash{1}, jamq.RefineContext{Anchor: jamq.HeaderHash(lineHash(9)), LookupAnchorSlot: 3})
		calls, refuses := 0, false
		s.override = func(method string, params []json.RawMessage) string {
			var h Hash
			if method != "workPackageStatus" || json.Unmarshal(params[0], &h) != nil {
				return ""
			}
			calls++
			switch {
			case refuses && lineSlot(h) == 10:
				return `"error":{"code":1,"message":"pruned"}`
			case refuses:
				return canBeReported
			}
			return fmt.Sprintf(`"result":{"Reported":{"reported_in":%s,"core":1,"report_hash":%s}}`, lineBlock(10), quoted(Hash{byte(calls)}))
		}
		s.head, s.final = 10, 6
		require.ErrorIs(t, feed.catchUp(t.Context(), sink), submit.ErrContradiction)
		require.Equal(t, 2*mostRounds, calls)
		require.Equal(t, jamq.Slot(9), feed.tree.Best().Slot)
		refuses = true
		require.Error(t, feed.catchUp(t.Context(), sink))
		s.head, s.final = 11, 7
		require.NoError(t, feed.catchUp(t.Context(), sink))
		require.Equal(t, jamq.Slot(11), feed.tree.Best().Slot)
		require.Empty(t, sink.told)
	})
}
