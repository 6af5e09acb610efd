package bundlequeue

import (
	"bytes"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
)

// Any events in any order, also on chains that break the rules: nothing panics, a refused event
// changes nothing, and the bounds of memory and cores hold.
func TestAnyEvents(t *testing.T) { rapid.Check(t, anyEvents) }

// FuzzAnyEvents is the same, led by coverage.
func FuzzAnyEvents(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyEvents)) }

func anyEvents(t *rapid.T) {
	cfg := DefaultConfig(jamq.Tiny())
	cfg.MaxQueueDepth, cfg.RetentionWindow, cfg.MaxVersionRetries = 3, 2, rapid.IntRange(0, 2).Draw(t, "retries")
	q, err := New(cfg, jamq.Block{Hash: jamq.HeaderHash{1}})
	if err != nil {
		t.Fatal(err)
	}
	now := jamq.CommonEra()
	blocks := []jamq.Block{{Hash: jamq.HeaderHash{1}}}
	pkgs := []jamq.PackageHash{{0xff}}
	tickets := []uint64{0}
	build := map[uint64]Build{}
	pkg := func(label string) jamq.PackageHash { return rapid.SampledFrom(pkgs).Draw(t, label) }
	block := func(label string) jamq.Block { return rapid.SampledFrom(blocks).Draw(t, label) }
	core := rapid.Map(rapid.IntRange(0, 2), func(i int) jamq.CoreIndex { return jamq.CoreIndex(i) })
	draw := func() Event {
		switch rapid.IntRange(0, 19).Draw(t, "event") {
		case 0:
			return Enqueue{Number: q.Next() + uint64(rapid.IntRange(0, 8).Draw(t, "beyond")/8)}
		case 1, 2:
			ticket := rapid.SampledFrom(tickets).Draw(t, "ticket")
			b := Built{Ticket: ticket, Package: jamq.PackageHash{byte(len(pkgs)), 1}}
			b.Context.Anchor, b.Context.LookupAnchorSlot = block("anchor").Hash, newestSlot(blocks)
			if asked, ok := build[ticket]; ok && rapid.IntRange(0, 3).Draw(t, "as asked") > 0 {
				b.Context.Anchor, b.Context.Prerequisites = asked.Anchor.Hash, asked.Prerequisites
			}
			return b
		case 3:
			return BuildFailed{Ticket: rapid.SampledFrom(tickets).Draw(t, "ticket")}
		case 4:
			return Sent{Ticket: rapid.SampledFrom(tickets).Draw(t, "ticket"), OK: rapid.Bool().Draw(t, "ok"), Refused: rapid.Bool().Draw(t, "refused")}
		case 5:
			return FinalizedBlock{Hash: block("final").Hash}
		case 6:
			return Tick{}
		case 9:
			return Reserve{Number: q.Next()}
		case 10:
			return Release{Number: q.Next() - 1}
		case 11:
			from := rapid.Uint64Range(0, q.Next()).Draw(t, "from")
			return Rekey{From: from, To: from + rapid.Uint64Range(0, 3).Draw(t, "shift") - 1}
		case 13:
			return Retry{Number: rapid.Uint64Range(0, q.Next()).Draw(t, "retried")}
		case 17:
			return GiveUp{Number: rapid.Uint64Range(0, q.Next()).Draw(t, "given up")}
		case 18:
			return Cores{Cores: rapid.SampledFrom([][]jamq.CoreIndex{nil, {0}, {1}, {0, 1}, {1, 0}, {2}}).Draw(t, "cores")}
		case 19:
			return Adopt{Number: rapid.Uint64Range(0, q.Next()).Draw(t, "adopted"), Package: rapid.SampledFrom([]jamq.PackageHash{pkg("lost"), {byte(len(pkgs)), 7}}).Draw(t, "package")}
		case 12, 14:
			return Tick{}
		}
		parent := blocks[len(blocks)-1]
		if rapid.IntRange(0, 4).Draw(t, "fork") == 0 {
			parent = block("parent")
		}
		b := jamq.Block{Hash: jamq.HeaderHash{byte(len(blocks) + 1), byte(len(blocks) >> 8), 2}, Parent: parent.Hash, Slot: parent.Slot + jamq.Slot(rapid.IntRange(0, 3).Draw(t, "slots"))}
		for range rapid.IntRange(0, 2).Draw(t, "reports") {
			b.Reported = append(b.Reported, jamq.Report{Hash: common.Hash{9}, Package: pkg("reported"), Core: core.Draw(t, "core")})
		}
		if rapid.Bool().Draw(t, "more") {
			b.Available = append(b.Available, core.Draw(t, "available"))
			b.Condemned = append(b.Condemned, common.Hash{9})
			b.AccumulatedKnown = rapid.Bool().Draw(t, "known")
			b.CoresCleared = rapid.IntRange(0, 4).Draw(t, "cleared") == 0
			b.Accumulated = append(b.Accumulated, pkg("accumulated"))
		}
		best := b.Hash
		if rapid.IntRange(0, 5).Draw(t, "best") == 0 {
			best = block("best").Hash
		}
		return Imported{Block: b, Best: best}
	}
	for range rapid.IntRange(1, 120).Draw(t, "steps") {
		now = now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "seconds")) * time.Second)
		ev := draw()
		before := q.Stats()
		effects, err := q.Step(now, ev)
		if err != nil {
			if len(effects) > 0 || q.Stats() != before {
				t.Fatalf("%T was refused and changed something", ev)
			}
			continue
		}
		switch ev := ev.(type) {
		case Imported:
			blocks = append(blocks, ev.Block)
		case Built:
			pkgs = append(pkgs, ev.Package)
		}
		for _, e := range effects {
			switch e := e.(type) {
			case Build:
				tickets = append(tickets, e.Ticket)
				build[e.Ticket] = e
			case Send:
				tickets = append(tickets, e.Ticket)
			}
			if e.String() == "" {
				t.Fatalf("%T has no text", e)
			}
		}
		if err := q.Check(); err != nil {
			t.Fatalf("after %T: %v", ev, err)
		}
		saved := q.AppendSnapshot(nil)
		back, err := Restore(cfg, saved)
		if err != nil {
			t.Fatalf("after %T: %v", ev, err)
		}
		if !bytes.Equal(saved, back.AppendSnapshot(nil)) {
			t.Fatalf("after %T: the restored queue has another snapshot", ev)
		}
		if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
			q = back
		}
	}
}

// newestSlot is the slot of the newest block.
func newestSlot(blocks []jamq.Block) jamq.Slot { return blocks[len(blocks)-1].Slot }
