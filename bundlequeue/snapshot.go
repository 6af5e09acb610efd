package bundlequeue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/wire"
)

// A snapshot begins with snapshotMagic and snapshotVersion. The body follows, and then
// a CRC-32C of all bytes before it.
const (
	snapshotMagic   = "jamq/queue"
	snapshotVersion = 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends the whole state of the queue to b, with a checksum at the
// end. From the result, Restore creates a queue that responds to every event
// exactly as this one does. Equal queues have equal snapshots.
func (q *Queue) AppendSnapshot(b []byte) []byte {
	start := len(b)
	b = append(b, snapshotMagic...)
	b = append(b, snapshotVersion)
	b = wire.AppendBytes(b, []byte(q.cfg.fingerprint()))
	b = q.appendBody(b)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// appendBody appends the body that read decodes.
func (q *Queue) appendBody(b []byte) []byte {
	b = wire.AppendInt(b, int64(q.now))
	for _, n := range []uint64{q.firstPlace, q.active, q.frontier, q.next, q.least, q.ticket} {
		b = wire.AppendUint(b, n)
	}
	for _, counters := range [][]uint32{q.delays.ReportedIn, q.delays.LostAfter} {
		for _, n := range counters {
			b = wire.AppendUint(b, uint64(n))
		}
	}
	b = wire.AppendUint(b, uint64(len(q.buildTimes)))
	for _, blocks := range q.buildTimes {
		b = wire.AppendUint(b, uint64(blocks))
	}
	b = appendTotals(b, &q.total)
	b = wire.AppendBytes(b, q.view.AppendSnapshot(nil))
	b = wire.AppendUint(wire.AppendHash(b, q.base), uint64(len(q.spent)))
	for _, s := range q.spent {
		b = wire.AppendUint(wire.AppendHash(b, s.commitment), s.place)
	}
	b = wire.AppendUint(b, uint64(len(q.items)))
	for _, it := range q.items {
		b = appendItem(b, it)
	}
	blocked := uint64(0)
	if q.blocked != nil {
		blocked = q.blocked.place + 1
	}
	return wire.AppendUint(q.cores.append(b), blocked)
}

func (c *cores) append(b []byte) []byte {
	b = wire.AppendBool(b, c.changed)
	b = wire.AppendUint(b, uint64(len(c.list)))
	for i := range c.list {
		k := &c.list[i]
		b = wire.AppendUint(b, uint64(k.index))
		b = wire.AppendBool(b, k.leaving)
		held := uint64(0)
		if k.holder != nil {
			held = k.holder.place + 1
		}
		b = wire.AppendUint(b, held)
	}
	return b
}

// fingerprint describes the settings that a restored queue must share with the old one.
func (c *Config) fingerprint() string {
	s := c.Spec
	return fmt.Sprintf("first number %d, %d cores, E %d, H %d, U %d, L %d",
		c.FirstNumber, s.Cores, s.EpochLength, s.RecentHistory, s.AvailabilityTimeout, s.MaxLookupAnchorAge)
}

func appendPoint(b []byte, p anchor.Point) []byte {
	b = wire.AppendHash(b, p.Hash)
	b = wire.AppendUint(b, p.Height)
	return wire.AppendUint(b, uint64(p.Slot))
}

func readPoint(r *wire.Reader) anchor.Point {
	return anchor.Point{Hash: wire.ReadHash[jamq.HeaderHash](r), Height: r.Uint(), Slot: readSlot(r)}
}

func (t *Totals) fields() []*uint64 {
	f := []*uint64{
		&t.Enqueued, &t.Built, &t.Useless, &t.Sends, &t.Died, &t.BuildsFailed, &t.SendsFailed,
		&t.DuplicateGuaranteeRejected, &t.DuplicateAccumulateRejected, &t.AccumulatedAfterFailed, &t.NonWinningVersionsCanceled,
	}
	for state := range t.entered {
		f = append(f, &t.entered[state])
	}
	return f
}

func appendTotals(b []byte, t *Totals) []byte {
	for _, f := range t.fields() {
		b = wire.AppendUint(b, *f)
	}
	return b
}

func appendItem(b []byte, it *item) []byte {
	b = wire.AppendUint(b, it.number)
	b = wire.AppendHash(b, it.commitment)
	b = wire.AppendBool(b, it.awaited != nil)
	if it.awaited != nil {
		b = wire.AppendHash(b, *it.awaited)
	}
	b = append(b, byte(it.state))
	if it.hasBundle() {
		b = wire.AppendBytes(b, it.bundle)
	}
	b = wire.AppendBool(b, it.deadSince != nil)
	if it.deadSince != nil {
		b = appendPoint(b, *it.deadSince)
	}
	b = wire.AppendUint(b, uint64(it.lastVersion))
	b = wire.AppendUint(b, uint64(it.core))
	b = wire.AppendInt(b, int64(it.notBefore))
	b = wire.AppendInt(b, int64(it.queuedAt))
	b = wire.AppendBool(b, it.trouble != nil)
	if t := it.trouble; t != nil {
		for _, n := range []int{t.failed, t.useless, int(t.reason)} {
			b = wire.AppendUint(b, uint64(n))
		}
		b = wire.AppendHash(wire.AppendHash(b, t.untilBest), t.untilFinal)
		b = wire.AppendBytes(b, []byte(t.givenUp))
	}
	b = wire.AppendBool(b, it.request != nil)
	if r := it.request; r != nil {
		b = wire.AppendUint(b, r.ticket)
		b = wire.AppendUint(b, uint64(r.version))
		b = wire.AppendBool(appendPoint(b, r.minAnchor), r.reorged)
		b = wire.AppendHash(appendPoint(b, r.best), r.final)
		b = wire.AppendHashes(b, r.prerequisites)
	}
	b = wire.AppendUint(b, uint64(len(it.versions)))
	for _, v := range it.versions {
		b = appendVersion(b, v)
	}
	return b
}

func appendVersion(b []byte, v *version) []byte {
	b = wire.AppendHash(b, v.pkg)
	if v.item.hasBundle() {
		b = wire.AppendBytes(b, v.bundle)
	}
	for _, n := range []int{v.number, v.attempts, v.failures} {
		b = wire.AppendUint(b, uint64(n))
	}
	for _, t := range []bool{v.sent, v.accepted, v.refused, v.wasDead, v.lost, v.rivalSeen} {
		b = wire.AppendBool(b, t)
	}
	b = wire.AppendUint(b, v.ticket)
	b = wire.AppendInt(b, int64(v.firstSend))
	b = wire.AppendInt(b, int64(v.lastSend))
	b = wire.AppendInt(b, int64(v.nextSend))
	return wire.AppendUint(b, v.sentHeight)
}

// Restore returns the queue that a snapshot contains. cfg must have the same chain
// and FirstNumber as the queue that made the snapshot; cores, limits and times may
// differ. If they differ, the host must call Step with a Tick before it relies on
// [Queue.NextWake]. The error wraps ErrCorrupt or ErrInvalidConfig. Restore does
// not panic, whatever the bytes are.
func Restore(cfg Config, snapshot []byte) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	const sum = 4
	head := len(snapshotMagic) + 1
	switch n := len(snapshot); {
	case n < head+sum || string(snapshot[:len(snapshotMagic)]) != snapshotMagic:
		return nil, fmt.Errorf("%w: %d bytes are not a snapshot", ErrCorrupt, n)
	case snapshot[head-1] != snapshotVersion:
		return nil, fmt.Errorf("%w: snapshot has version %d, want %d", ErrCorrupt, snapshot[head-1], snapshotVersion)
	case crc32.Checksum(snapshot[:n-sum], castagnoli) != binary.LittleEndian.Uint32(snapshot[n-sum:]):
		return nil, fmt.Errorf("%w: snapshot has the wrong checksum", ErrCorrupt)
	}
	r := wire.NewReader(snapshot[head : len(snapshot)-sum])
	if have, want := r.Bytes(), cfg.fingerprint(); r.Err() == nil && !bytes.Equal(have, []byte(want)) {
		return nil, fmt.Errorf("%w: snapshot was made with %q, want %q", ErrInvalidConfig, have, want)
	}
	q := read(cfg, r)
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := q.checkPlaces(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	q.configure()
	if err := q.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return q, nil
}

// configure applies the configuration to a restored queue.
func (q *Queue) configure() {
	q.retire()
	// Cores that a Cores event has set stay, because an operator has chosen them.
	if !q.cores.changed {
		q.cores.set(q.cfg.Cores)
	}
}

// read decodes the output of appendBody. Restore checks whether the state is possible.
func read(cfg Config, r *wire.Reader) *Queue {
	q := empty(cfg)
	q.now = instant(r.Int())
	for _, n := range []*uint64{&q.firstPlace, &q.active, &q.frontier, &q.next, &q.least} {
		*n = r.UintBelow(2*most, "place or number")
	}
	q.ticket = r.Uint()
	for _, counters := range [][]uint32{q.delays.ReportedIn, q.delays.LostAfter} {
		for i := range counters {
			counters[i] = uint32(r.UintBelow(1<<32, "delays"))
		}
	}
	if err := q.delays.Validate(&cfg.Spec); err != nil {
		r.Fail("%v", err)
	}
	for range r.UintBelow(buildMemory+1, "number of build times") {
		q.buildTimes = append(q.buildTimes, int(r.UintBelow(uint64(cfg.Spec.RecentHistory)+1, "build time")))
	}
	for _, f := range q.total.fields() {
		*f = r.Uint()
	}
	raw := r.Bytes()
	if r.Err() != nil {
		return nil
	}
	var err error
	if q.view, err = chainview.Restore(&q.cfg.Spec, raw); err != nil {
		r.Fail("%v", err)
		return nil
	}
	q.readBundles(r)
	return q
}

// readBundles decodes the commitments, the bundles, and the cores.
func (q *Queue) readBundles(r *wire.Reader) {
	q.setBase(wire.ReadHash[common.Hash](r))
	for range r.Count(33) {
		s := spent{wire.ReadHash[common.Hash](r), r.UintBelow(2*most, "place")}
		q.spent = append(q.spent, s)
		q.useOnce(r, s.commitment)
	}
	for range r.Count(32) {
		q.readItem(r)
		if r.Err() != nil {
			return
		}
	}
	q.readCores(r)
	blocked := r.Uint()
	if r.Err() != nil {
		return
	}
	if blocked > 0 {
		q.blocked = q.at(blocked - 1)
	}
	for _, it := range q.items {
		q.plan(it)
	}
}

func (q *Queue) readCores(r *wire.Reader) {
	q.cores.changed = r.Bool()
	for range r.Count(3) {
		k := core{index: jamq.CoreIndex(r.UintBelow(uint64(q.cfg.Spec.Cores), "core")), leaving: r.Bool()}
		place := r.Uint()
		if r.Err() != nil {
			return
		}
		if slices.ContainsFunc(q.cores.list, func(other core) bool { return other.index == k.index }) {
			r.Fail("core %d twice", k.index)
			return
		}
		if place > 0 {
			k.holder = q.at(place - 1)
			if k.holder == nil || k.holder.holdsCore || k.holder.core != k.index {
				r.Fail("core %d is held by a bundle that cannot hold it", k.index)
				return
			}
			k.holder.holdsCore = true
		} else if !k.leaving {
			q.cores.free++
		}
		q.cores.list = append(q.cores.list, k)
	}
	if len(q.cores.indices()) == 0 {
		r.Fail("no cores")
	}
}

func (q *Queue) readItem(r *wire.Reader) {
	it := &item{place: q.end(), number: r.UintBelow(2*most, "number"), commitment: wire.ReadHash[common.Hash](r)}
	if r.Bool() {
		awaited := wire.ReadHash[common.Hash](r)
		it.awaited = &awaited
	}
	it.state = State(r.UintBelow(uint64(FailedState), "state"))
	if it.hasBundle() {
		it.bundle = bytes.Clone(r.Bytes())
	}
	if r.Bool() {
		since := readPoint(r)
		it.deadSince = &since
	}
	it.lastVersion = int(r.UintBelow(most, "version"))
	it.core = jamq.CoreIndex(r.UintBelow(uint64(q.cfg.Spec.Cores), "core"))
	it.notBefore, it.queuedAt = instant(r.Int()), instant(r.Int())
	if r.Bool() {
		it.trouble = &trouble{
			failed: int(r.UintBelow(most, "failures")), useless: int(r.UintBelow(most, "useless builds")),
			reason:    anchor.Reason(r.UintBelow(uint64(anchor.Overtaken)+1, "reason")),
			untilBest: wire.ReadHash[jamq.HeaderHash](r), untilFinal: wire.ReadHash[jamq.HeaderHash](r),
			givenUp: string(r.Bytes()),
		}
	}
	if r.Bool() {
		it.request = &request{
			ticket: r.Uint(), version: int(r.UintBelow(most, "version")),
			minAnchor: readPoint(r), reorged: r.Bool(), best: readPoint(r), final: wire.ReadHash[jamq.HeaderHash](r), prerequisites: wire.ReadHashes[jamq.PackageHash](r),
		}
		if _, twice := q.builds[it.request.ticket]; twice {
			r.Fail("two builds have ticket %d", it.request.ticket)
		}
		q.builds[it.request.ticket] = it
	}
	for range r.Count(32) {
		q.readVersion(r, it)
	}
	q.useOnce(r, it.commitment)
	q.append(it)
}

func (q *Queue) readVersion(r *wire.Reader, it *item) {
	v := &version{item: it, pkg: wire.ReadHash[jamq.PackageHash](r)}
	if it.hasBundle() {
		v.bundle = bytes.Clone(r.Bytes())
	}
	for _, n := range []*int{&v.number, &v.attempts, &v.failures} {
		*n = int(r.UintBelow(most, "count"))
	}
	for _, t := range []*bool{&v.sent, &v.accepted, &v.refused, &v.wasDead, &v.lost, &v.rivalSeen} {
		*t = r.Bool()
	}
	v.ticket, v.firstSend, v.lastSend, v.nextSend = r.Uint(), instant(r.Int()), instant(r.Int()), instant(r.Int())
	v.sentHeight = r.Uint()
	var watched bool
	if v.trace, watched = q.view.Trace(v.pkg); !watched {
		r.Fail("package %s is not watched", v.pkg)
	}
	if _, twice := q.versions[v.pkg]; twice {
		r.Fail("package %s twice", v.pkg)
	}
	if r.Err() != nil {
		return
	}
	q.versions[v.pkg] = v
	if v.ticket != 0 {
		q.sends[v.ticket] = v
	}
	it.versions = append(it.versions, v)
}
