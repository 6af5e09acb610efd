package jip2

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/headers"
)

var (
	reportable = WorkPackageStatus{Reportable: &Reportable{RemainingBlocks: 1}}
	reported   = WorkPackageStatus{Reported: &Reported{ReportedIn: BlockDescriptor{Hash{5}, 5}, Core: 1, ReportHash: Hash{9}}}
	ready      = WorkPackageStatus{Ready: &Ready{Reported: *reported.Reported, ReadyIn: BlockDescriptor{Hash{7}, 7}}}
	failed     = WorkPackageStatus{Failed: new(string)}
)

// Each row is a chain, told by the answers after its blocks, which are one slot apart from slot 5
// on.
func TestFate(t *testing.T) {
	spec := jamq.Tiny()
	yes := true
	type a struct {
		status WorkPackageStatus
		taken  bool
	}
	r, v, c, n := shown{reports: true}, shown{makesAvailable: true}, shown{condemns: true}, shown{}
	acc := shown{accumulates: true}
	for name, x := range map[string]struct {
		answers []a
		want    []shown
		end     stage
		settled bool
	}{
		"straight":           {[]a{{reportable, false}, {reported, false}, {ready, false}, {ready, yes}}, []shown{n, r, v, acc}, taken, true},
		"at once":            {[]a{{reported, false}, {ready, yes}}, []shown{r, {makesAvailable: true, accumulates: true}}, taken, true},
		"seen when ready":    {[]a{{ready, yes}, {ready, yes}}, []shown{{reports: true, accumulates: true}, n}, taken, true},
		"never reported":     {[]a{{reportable, false}, {failed, false}, {failed, false}}, []shown{n, n, n}, unseen, false},
		"timed out":          {[]a{{reported, false}, {reported, false}, {reported, false}, {reported, false}, {reported, false}, {failed, false}}, []shown{r, n, n, n, n, n}, lost, true},
		"verdict":            {[]a{{reported, false}, {failed, false}, {failed, false}}, []shown{r, c, n}, lost, true},
		"stuck at Reported":  {[]a{{reported, false}, {reported, false}, {reported, false}, {reported, false}, {reported, false}, {reported, false}, {reported, yes}}, []shown{r, n, n, n, n, v, acc}, taken, true},
		"stuck, and taken":   {[]a{{reported, false}, {reported, yes}}, []shown{r, {makesAvailable: true, accumulates: true}}, taken, true},
		"forgotten by then":  {[]a{{reported, false}, {ready, false}, {failed, yes}}, []shown{r, v, acc}, taken, true},
		"failed but taken":   {[]a{{reported, false}, {failed, yes}}, []shown{r, {makesAvailable: true, accumulates: true}}, taken, true},
		"only the service":   {[]a{{failed, yes}}, []shown{acc}, taken, true},
		"ready, not taken":   {[]a{{reported, false}, {ready, false}, {ready, false}}, []shown{r, v, n}, available, false},
		"lost, and yet done": {[]a{{reported, false}, {failed, false}, {ready, yes}}, []shown{r, c, acc}, taken, true},
	} {
		t.Run(name, func(t *testing.T) {
			var f fate
			slot := jamq.Slot(5)
			for i := range x.answers {
				var does shown
				f, does = f.next(&spec, slot, false, &answer{status: x.answers[i].status, taken: x.answers[i].taken})
				require.Equal(t, x.want[i], does, "block %d", i)
				slot++
			}
			require.Equal(t, x.end, f.stage)
			require.Equal(t, x.settled, f.settled(&spec, slot-1))
		})
	}
	waiting := fate{stage: available, since: 10}
	require.False(t, waiting.settled(&spec, 21))
	require.True(t, waiting.settled(&spec, 22), "an epoch later")
}

// A package that was accumulated in blocks without answers counts as
// accumulated in the last of them that is possible, so that it is not dead in
// between.
func TestTakenLater(t *testing.T) {
	spec := jamq.Tiny()
	f := fate{stage: available, since: 10}
	f, does := f.next(&spec, 21, true, &answer{status: ready, takenLater: true})
	require.Equal(t, shown{}, does)
	f, does = f.next(&spec, 22, true, &answer{status: ready, takenLater: true})
	require.Equal(t, shown{accumulates: true}, does, "an epoch later")
	require.Equal(t, taken, f.stage)

	f = fate{stage: onCore, since: 10} // and the node has forgotten it
	f, does = f.next(&spec, 12, true, &answer{status: failed, takenLater: true})
	require.Equal(t, shown{}, does)
	_, does = f.next(&spec, 15, true, &answer{status: failed, takenLater: true})
	require.Equal(t, shown{makesAvailable: true}, does)

	f = fate{}
	f, does = f.next(&spec, 11, true, &answer{status: reportable, takenLater: true})
	require.Equal(t, shown{}, does, "a later block will be shown to report it")
	f, does = f.next(&spec, 12, false, &answer{status: failed, takenLater: true})
	require.Equal(t, shown{}, does)
	_, does = f.next(&spec, 13, true, &answer{status: failed, takenLater: true})
	require.Equal(t, shown{accumulates: true}, does, "nothing can report it any more")
}

// A later block has evidence about earlier ones. Blocks 0 to 3 are on the way; Hash{5} is number 1
// and Hash{7} number 2.
func TestEarlier(t *testing.T) {
	position := func(h jamq.HeaderHash) (int, bool) {
		i, ok := map[jamq.HeaderHash]int{{5}: 1, {7}: 2}[h]
		return i, ok
	}
	kind := func(s WorkPackageStatus) string {
		switch {
		case s.Reportable != nil:
			return "reportable"
		case s.Reported != nil:
			return "reported"
		case s.Ready != nil:
			return "ready"
		}
		return "failed"
	}
	for name, x := range map[string]struct {
		later WorkPackageStatus
		want  []string
	}{
		"reportable": {reportable, []string{"reportable", "reportable", "reportable"}},
		"reported":   {reported, []string{"reportable", "reported", "reported"}},
		"ready":      {ready, []string{"reportable", "reported", "ready"}},
		"failed":     {failed, []string{"failed", "failed", "failed"}},
	} {
		for i, want := range x.want {
			a := answer{status: x.later, taken: true}
			got := a.earlier(i, position)
			require.Equal(t, want, kind(got.status), "%s at %d", name, i)
			require.False(t, got.taken, "nobody knows yet")
			require.True(t, got.takenLater)
		}
	}
}

// A core was free before a new report, so a package that is still on it by a
// stale status has become available. No block puts two reports on one core.
func TestOneReportPerCore(t *testing.T) {
	one, two, three := jamq.PackageHash{1}, jamq.PackageHash{2}, jamq.PackageHash{3}
	tree := headers.New(jamq.HeaderHash{1}, jamq.HeaderHash{}, 10, 8, fates{one: {stage: onCore, core: 1, since: 9}})
	f := &Feed{spec: jamq.Tiny(), tree: tree, watched: map[jamq.PackageHash]watched{}}
	s := &step{BlockDescriptor: BlockDescriptor{Hash{2}, 11}, parent: tree.Best().Hash, answers: map[jamq.PackageHash]*answer{
		one: {status: reported}, two: {status: reported}, three: {status: reported},
	}}
	n, block := f.build(s)
	require.Equal(t, []jamq.CoreIndex{1}, block.Available)
	require.Len(t, block.Reported, 1)
	require.Equal(t, two, block.Reported[0].Package)
	require.Equal(t, fate{stage: available, core: 1, since: 11}, n.Note[one])
	require.Equal(t, onCore, n.Note[two].stage)
	require.Equal(t, unseen, n.Note[three].stage, "the next block shows it")
	require.NoError(t, block.Validate(&f.spec))

	f.tree.Add(n)
	s = &step{BlockDescriptor: BlockDescriptor{Hash{3}, 12}, parent: n.Hash, answers: s.answers}
	n, block = f.build(s)
	require.Equal(t, []jamq.CoreIndex{1}, block.Available)
	require.Equal(t, three, block.Reported[0].Package)
	require.Equal(t, available, n.Note[two].stage)
	require.Empty(t, block.Condemned)
	require.Empty(t, block.Accumulated)
}
