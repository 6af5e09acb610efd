package told

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/wire"
)

// AppendSnapshot implements bundlequeue.Evidence.
func (e *Evidence) AppendSnapshot(b []byte) []byte {
	b = appendTime(b, e.now)
	for _, n := range []uint64{e.stats.DuplicateGuarantees, e.stats.DuplicateAccumulations, e.stats.AccumulatedAfterFailed} {
		b = wire.AppendUint(b, n)
	}
	b = wire.AppendHashes(b, e.buried)
	b = wire.AppendUint(b, uint64(len(e.fates)))
	for _, bundle := range slices.SortedFunc(maps.Keys(e.bundles), cmp.Compare) {
		for _, f := range e.bundles[bundle] {
			b = f.append(b)
		}
	}
	return b
}

func (f *fate) append(b []byte) []byte {
	b = wire.AppendHash(b, f.pkg)
	b = wire.AppendUint(b, f.bundle)
	b = wire.AppendHashes(b, f.prerequisites)
	for _, t := range []bool{!f.status.Reported.IsZero(), !f.status.Accumulated.IsZero(), f.final, f.orphaned, f.sent, f.timer.Queued()} {
		b = wire.AppendBool(b, t)
	}
	b = wire.AppendUint(b, uint64(f.status.Dead))
	b = wire.AppendUint(b, uint64(f.timeouts))
	b = appendTime(b, f.lastSend)
	if f.timer.Queued() {
		b = wire.AppendInt(b, f.timer.Key())
	}
	return b
}

// appendTime encodes the zero time as 0, because UnixNano is not defined for
// it.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return wire.AppendInt(b, 0)
	}
	return wire.AppendInt(b, t.UnixNano())
}

func readTime(r *wire.Reader) time.Time {
	n := r.Int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// RestoreEvidence decodes the output of [Evidence.AppendSnapshot]: see
// bundlequeue.RestoreWith. The error wraps [ErrInvalidConfig] or
// bundlequeue.ErrCorrupt. RestoreEvidence never panics, even on arbitrary
// bytes.
func RestoreEvidence(spec jamq.ChainSpec, cfg Config, snapshot []byte) (*Evidence, error) {
	e, err := NewEvidence(spec, cfg)
	if err != nil {
		return nil, err
	}
	r := wire.NewReader(snapshot)
	e.now = readTime(r)
	for _, n := range []*uint64{&e.stats.DuplicateGuarantees, &e.stats.DuplicateAccumulations, &e.stats.AccumulatedAfterFailed} {
		*n = r.Uint()
	}
	e.buried = wire.ReadHashes[jamq.PackageHash](r)
	for range r.Count(32) {
		e.readFate(r)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", bundlequeue.ErrCorrupt, err)
	}
	return e, nil
}

func (e *Evidence) readFate(r *wire.Reader) {
	f := &fate{owner: e, pkg: wire.ReadHash[jamq.PackageHash](r), bundle: r.Uint(), prerequisites: wire.ReadHashes[jamq.PackageHash](r)}
	for _, p := range []*anchor.Point{&f.status.Reported, &f.status.Accumulated} {
		if r.Bool() {
			*p = Block
		}
	}
	f.final, f.orphaned, f.sent = r.Bool(), r.Bool(), r.Bool()
	queued := r.Bool()
	f.status.Dead = anchor.Reason(r.UintBelow(uint64(anchor.ClockExpired)+1, "reason"))
	f.timeouts = int(r.UintBelow(1<<31, "time-outs"))
	f.lastSend = readTime(r)
	if _, twice := e.fates[f.pkg]; twice {
		r.Fail("package %s twice", f.pkg)
	}
	if r.Err() != nil {
		return
	}
	e.enter(f)
	if queued {
		e.timers.Set(&f.timer, r.Int())
	}
}
