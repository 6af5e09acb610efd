package bundlequeue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/wire"
)

// Codec turns the host's bundles into bytes and back, for snapshots and records. Equal bundles must give equal bytes.
type Codec[B any] interface {
	// AppendBundle appends the bundle's bytes.
	AppendBundle(b []byte, bundle B) []byte
	// DecodeBundle reads what AppendBundle wrote. It must not keep b, and must not panic whatever b is.
	DecodeBundle(b []byte) (B, error)
}

// A snapshot is the magic, a version, the body and a CRC-32C of all before it.
const (
	snapshotMagic   = "jamq/queue"
	snapshotVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends everything that the queue knows, in a form that is the same for equal queues: two queues with equal
// snapshots answer every event alike. It ends with a checksum.
func AppendSnapshot[B any](b []byte, codec Codec[B], q *Queue[B]) []byte {
	start := len(b)
	b = append(b, snapshotMagic...)
	b = append(b, snapshotVersion)
	b = wire.AppendBytes(b, []byte(q.cfg.fingerprint()))
	b = q.appendBody(b, codec)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// appendBody appends what read reads.
func (q *Queue[B]) appendBody(b []byte, codec Codec[B]) []byte {
	b = wire.AppendInt(b, int64(q.now))
	for _, n := range []uint64{q.firstPlace, q.active, q.frontier, q.next, q.least, uint64(q.depth), q.ticket} {
		b = wire.AppendUint(b, n)
	}
	for _, counters := range [][]uint32{q.delays.ReportedIn, q.delays.LostAfter} {
		for _, n := range counters {
			b = wire.AppendUint(b, uint64(n))
		}
	}
	b = appendTotals(b, &q.total)
	b = wire.AppendBool(b, q.view != nil)
	if q.view != nil {
		b = wire.AppendBytes(b, q.view.AppendSnapshot(nil))
	}
	b = wire.AppendUint(b, uint64(len(q.items)))
	for _, it := range q.items {
		b = appendItem(b, codec, it)
	}
	b = wire.AppendHashes(b, q.buried)
	b = wire.AppendUint(b, uint64(len(q.returned)))
	for _, f := range q.returned {
		b = wire.AppendUint(b, f.Ticket)
		b = wire.AppendUint(b, f.Number)
		b = wire.AppendUint(b, f.Cause)
		b = wire.AppendBytes(b, []byte(f.Reason))
		b = wire.AppendBytes(b, codec.AppendBundle(nil, f.Bundle))
	}
	for _, it := range q.holders {
		held := uint64(0)
		if it != nil {
			held = it.place + 1
		}
		b = wire.AppendUint(b, held)
	}
	return b
}

// fingerprint is what a snapshot's owner must not change: what the evidence means and where packages go. Time-outs and limits may.
func (c *Config) fingerprint() string {
	s := c.Spec
	return fmt.Sprintf("%v evidence, first number %d, cores %v of %d, E %d, H %d, U %d, L %d",
		c.Evidence, c.FirstNumber, c.Cores, s.Cores, s.EpochLength, s.RecentHistory, s.AvailabilityTimeout, s.MaxLookupAnchorAge)
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
		&t.Enqueued, &t.Built, &t.Sends, &t.Died, &t.BuildsFailed, &t.SendsFailed,
		&t.DuplicateGuaranteeRejected, &t.DuplicateAccumulateRejected, &t.AccumulatedAfterFailed, &t.NonWinningVersionsCanceled,
	}
	for from := range t.Transitions {
		for to := range t.Transitions[from] {
			f = append(f, &t.Transitions[from][to])
		}
	}
	return f
}

func appendTotals(b []byte, t *Totals) []byte {
	for _, f := range t.fields() {
		b = wire.AppendUint(b, *f)
	}
	return b
}

func appendItem[B any](b []byte, codec Codec[B], it *item[B]) []byte {
	b = wire.AppendUint(b, it.number)
	b = wire.AppendHash(b, it.commitment)
	b = append(b, byte(it.state))
	if it.hasBundle() {
		b = wire.AppendBytes(b, codec.AppendBundle(nil, it.bundle))
	}
	b = wire.AppendUint(b, uint64(it.lastVersion))
	b = wire.AppendUint(b, uint64(it.core))
	b = wire.AppendUint(b, uint64(it.buildFailures))
	b = wire.AppendInt(b, int64(it.notBefore))
	b = wire.AppendBool(b, it.request != nil)
	if r := it.request; r != nil {
		b = wire.AppendUint(b, r.ticket)
		b = wire.AppendUint(b, uint64(r.version))
		b = appendPoint(b, r.minAnchor)
		b = wire.AppendHashes(b, r.prerequisites)
	}
	b = wire.AppendUint(b, uint64(len(it.versions)))
	for _, v := range it.versions {
		b = appendVersion(b, codec, v)
	}
	return b
}

func appendVersion[B any](b []byte, codec Codec[B], v *version[B]) []byte {
	b = wire.AppendHash(b, v.pkg)
	if v.item.hasBundle() {
		b = wire.AppendBytes(b, codec.AppendBundle(nil, v.bundle))
	}
	for _, n := range []int{v.number, v.attempts, v.failures} {
		b = wire.AppendUint(b, uint64(n))
	}
	for _, t := range []bool{v.sent, v.accepted, v.wasDead, v.rivalSeen} {
		b = wire.AppendBool(b, t)
	}
	b = wire.AppendUint(b, v.ticket)
	b = wire.AppendInt(b, int64(v.lastSend))
	b = wire.AppendInt(b, int64(v.nextSend))
	b = wire.AppendUint(b, v.sentHeight)
	if t := v.told; t != nil {
		b = wire.AppendHashes(b, t.prerequisites)
		b = wire.AppendBool(b, !t.status.Reported.IsZero())
		b = wire.AppendBool(b, !t.status.Accumulated.IsZero())
		b = wire.AppendBool(b, t.status.Dead != anchor.Alive)
		b = wire.AppendBool(b, t.spread)
		b = wire.AppendBool(b, t.final)
		b = wire.AppendUint(b, uint64(t.timeouts))
		b = wire.AppendBool(b, t.deadline.Queued())
		if t.deadline.Queued() {
			b = wire.AppendInt(b, int64(t.deadline.Key()))
		}
	}
	return b
}

// Restore makes a queue of a snapshot. cfg must name the same chain, cores and evidence as that of the queue that was
// saved; its limits and times may differ. The error wraps ErrCorrupt or ErrInvalidConfig. Whatever the bytes are, it never panics.
func Restore[B any](cfg Config, codec Codec[B], snapshot []byte) (*Queue[B], error) {
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
	q := empty[B](cfg)
	q.read(r, codec)
	if r.Err() == nil {
		q.verify(r)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return q, nil
}

func (q *Queue[B]) read(r *wire.Reader, codec Codec[B]) {
	q.now = instant(r.Int())
	for _, n := range []*uint64{&q.firstPlace, &q.active, &q.frontier, &q.next, &q.least} {
		*n = r.UintBelow(2*most, "place or number")
	}
	q.depth = int(r.UintBelow(maxDepth+1, "depth"))
	q.ticket = r.Uint()
	for _, counters := range [][]uint32{q.delays.ReportedIn, q.delays.LostAfter} {
		for i := range counters {
			counters[i] = uint32(r.UintBelow(1<<32, "delays"))
		}
	}
	if err := q.delays.Validate(&q.cfg.Spec); err != nil {
		r.Fail("%v", err)
	}
	for _, f := range q.total.fields() {
		*f = r.Uint()
	}
	if r.Bool() != (q.cfg.Evidence == ChainEvidence) {
		r.Fail("evidence is not as configured")
	}
	if q.cfg.Evidence == ChainEvidence && r.Err() == nil {
		view, err := chainview.Restore(&q.cfg.Spec, r.Bytes())
		if err != nil {
			r.Fail("%v", err)
		}
		q.view = view
	}
	if r.Err() != nil {
		return
	}
	for range r.Count(32) {
		q.readItem(r, codec)
		if r.Err() != nil {
			return
		}
	}
	q.buried = wire.ReadHashes[jamq.PackageHash](r)
	for range r.Count(5) {
		q.returned = append(q.returned, Failed[B]{
			Ticket: r.Uint(), Number: r.Uint(), Cause: r.Uint(), Reason: string(r.Bytes()), Bundle: readBundle(r, codec),
		})
	}
	for i := range q.holders {
		if place := r.Uint(); place > 0 && r.Err() == nil {
			it := q.at(place - 1)
			if it == nil || it.holdsCore || it.core != q.cfg.Cores[i] {
				r.Fail("core %d is held by nobody who can", q.cfg.Cores[i])
				return
			}
			q.holders[i], it.holdsCore = it, true
			q.held++
		}
	}
	for _, it := range q.items {
		q.plan(it)
	}
}

func (q *Queue[B]) readItem(r *wire.Reader, codec Codec[B]) {
	it := &item[B]{place: q.end(), number: r.UintBelow(2*most, "number"), commitment: wire.ReadHash[common.Hash](r)}
	it.state = State(r.UintBelow(uint64(FailedState), "state"))
	if it.hasBundle() {
		it.bundle = readBundle(r, codec)
	}
	it.lastVersion = int(r.UintBelow(most, "version"))
	it.core = jamq.CoreIndex(r.UintBelow(uint64(q.cfg.Spec.Cores), "core"))
	it.buildFailures = int(r.UintBelow(most, "failures"))
	it.notBefore = instant(r.Int())
	if r.Bool() {
		it.request = &request{
			ticket: r.Uint(), version: int(r.UintBelow(most, "version")),
			minAnchor: readPoint(r), prerequisites: wire.ReadHashes[jamq.PackageHash](r),
		}
		if _, twice := q.builds[it.request.ticket]; twice {
			r.Fail("two builds have ticket %d", it.request.ticket)
		}
		q.builds[it.request.ticket] = it
	}
	for range r.Count(32) {
		q.readVersion(r, codec, it)
	}
	q.append(it)
}

func (q *Queue[B]) readVersion(r *wire.Reader, codec Codec[B], it *item[B]) {
	v := &version[B]{item: it, pkg: wire.ReadHash[jamq.PackageHash](r)}
	if it.hasBundle() {
		v.bundle = readBundle(r, codec)
	}
	for _, n := range []*int{&v.number, &v.attempts, &v.failures} {
		*n = int(r.UintBelow(most, "count"))
	}
	for _, t := range []*bool{&v.sent, &v.accepted, &v.wasDead, &v.rivalSeen} {
		*t = r.Bool()
	}
	v.ticket, v.lastSend, v.nextSend, v.sentHeight = r.Uint(), instant(r.Int()), instant(r.Int()), r.Uint()
	if q.view == nil {
		q.readTold(r, v)
	} else {
		var watched bool
		if v.trace, watched = q.view.Trace(v.pkg); !watched {
			r.Fail("package %s is not watched", v.pkg)
		}
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

func (q *Queue[B]) readTold(r *wire.Reader, v *version[B]) {
	t := &told[B]{prerequisites: wire.ReadHashes[jamq.PackageHash](r)}
	t.deadline.Value = v
	for _, p := range []*anchor.Point{&t.status.Reported, &t.status.Accumulated} {
		if r.Bool() {
			*p = ToldBlock
		}
	}
	if r.Bool() {
		t.status.Dead = anchor.ClockExpired
	}
	t.spread, t.final, t.timeouts = r.Bool(), r.Bool(), int(r.UintBelow(most, "time-outs"))
	if r.Bool() {
		q.timers.Set(&t.deadline, instant(r.Int()))
	}
	v.told = t
}

func readBundle[B any](r *wire.Reader, codec Codec[B]) B {
	bundle, err := codec.DecodeBundle(r.Bytes())
	if err != nil {
		r.Fail("bundle: %v", err)
	}
	return bundle
}

// verify refuses what no queue can look like, so that a restored one keeps its invariants whatever was read.
func (q *Queue[B]) verify(r *wire.Reader) {
	if q.active < q.firstPlace || q.active > q.end() || q.frontier > q.end() || q.depth < 1 {
		r.Fail("places %d, %d of %d to %d", q.active, q.frontier, q.firstPlace, q.end())
		return
	}
	for i, it := range q.items {
		state, _, _ := it.derive()
		if final := it.place < q.active; final != (it.state == Finalized) || !final && state != it.state || it.state < Guaranteed && it.place < q.frontier {
			r.Fail("bundle %d cannot be %v", it.number, it.state)
		}
		if it.holdsCore && (it.state < Building || it.state > Submitted) || it.request != nil && !it.holdsCore || i > 0 && it.number <= q.items[i-1].number || it.number >= q.next {
			r.Fail("bundle %d is out of order", it.number)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(q.sends)) {
		if v := q.sends[t]; v.ticket != t {
			r.Fail("two sends have ticket %d", t)
		}
	}
}
