package told

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Simple is a bundlequeue.Queue with methods in place of events: the host enqueues a
// bundle, dequeues the next job, and reports the outcome of the job. Simple keeps the
// queue's Build and Send effects as jobs for [Simple.Dequeue]. Its methods return all
// other effects as news: bundlequeue.Changed, Died, Failed and Resurrected.
//
// If the host reports an event on the chain, such as a guarantee, the news that follows
// from it is returned with the next block of the [Feed]. If there is no feed, the methods
// whose names begin with On ignore their event. A Simple is not safe for concurrent use.
type Simple struct {
	queue *bundlequeue.Queue
	feed  *Feed                // nil if the host imports blocks by Step
	jobs  []bundlequeue.Effect // Build and Send effects
}

// New returns an empty queue for a host that sees no JAM blocks. The queue gets artificial
// blocks from a new [Feed], which told configures. The error wraps [ErrInvalidConfig] or
// bundlequeue.ErrInvalidConfig.
func New(cfg bundlequeue.Config, told Config) (*Simple, error) {
	feed, err := NewFeed(cfg.Spec, told)
	if err != nil {
		return nil, err
	}
	q, err := bundlequeue.New(cfg, feed.Root())
	if err != nil {
		return nil, err
	}
	return &Simple{queue: q, feed: feed}, nil
}

// snapshot is the form in which AppendSnapshot encodes a Simple, as JSON.
type snapshot struct {
	Queue []byte
	Feed  *state
}

// Restore returns the queue from a snapshot that [Simple.AppendSnapshot] has
// made. The requests of that queue that were still open become jobs. The errors
// are those of bundlequeue.Restore.
func Restore(cfg bundlequeue.Config, told Config, raw []byte) (*Simple, error) {
	feed, err := NewFeed(cfg.Spec, told)
	if err != nil {
		return nil, err
	}
	s := snapshot{Feed: &feed.state}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", bundlequeue.ErrCorrupt, err)
	}
	q, err := bundlequeue.Restore(cfg, s.Queue)
	if err != nil {
		return nil, err
	}
	restored := NewSimple(q)
	if s.Feed != nil { // it is nil if the host imports blocks
		restored.feed = feed
	}
	return restored, nil
}

// NewSimple wraps the queue of a host that imports JAM blocks itself and passes
// them to [Simple.Step]. The open requests of the queue become jobs. From then
// on, no other code may call the Step method of the queue.
func NewSimple(q *bundlequeue.Queue) *Simple {
	s := &Simple{queue: q}
	s.keepJobs(q.Open())
	return s
}

// keepJobs stores Build and Send effects as jobs, and returns the others.
func (s *Simple) keepJobs(effects []bundlequeue.Effect) []bundlequeue.Effect {
	news := effects[:0]
	for _, e := range effects {
		switch e.(type) {
		case bundlequeue.Build, bundlequeue.Send:
			s.jobs = append(s.jobs, e)
		default:
			news = append(news, e)
		}
	}
	return news
}

// AppendSnapshot appends the whole state of the queue and of the feed to b, for
// [Restore].
func (s *Simple) AppendSnapshot(b []byte) []byte {
	whole := snapshot{Queue: s.queue.AppendSnapshot(nil)}
	if s.feed != nil {
		whole.Feed = &s.feed.state
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		panic(err) // impossible for numbers and hashes
	}
	return append(b, raw...)
}

// Job is a task for the host: either to build and send a package of a bundle,
// or to send a package again.
type Job struct {
	// Number is the number of the rollup block. Version counts the packages of the bundle, and
	// Attempt counts the sends of a package, both from 1. The host should choose a different
	// guarantor for each attempt.
	Number           uint64
	Version, Attempt int
	// Core is the core whose guarantors should receive the package.
	Core jamq.CoreIndex
	// Package is the package to send again. It is zero if the host must build a
	// package first.
	Package jamq.PackageHash
	// Bundle has the bytes of Package. If Package is zero, Bundle is instead the bundle
	// to build the package from.
	Bundle []byte
	// Anchor, MinAnchor and Prerequisites are conditions for the package that
	// the host builds: see bundlequeue.Build.
	Anchor, MinAnchor anchor.Point
	Prerequisites     []jamq.PackageHash

	ticket uint64
}

// Step passes an event to the queue, after the blocks of the feed that are due by now. It
// returns the effects that are no jobs, for example that a bundle has changed its state or
// has failed.
func (s *Simple) Step(now time.Time, ev bundlequeue.Event) (news []bundlequeue.Effect, err error) {
	effects, err := s.step(now, ev)
	return s.keepJobs(effects), err
}

// step does the work of Step, but returns all effects, including Build and Send.
func (s *Simple) step(now time.Time, ev bundlequeue.Event) (all []bundlequeue.Effect, err error) {
	var due []bundlequeue.Event
	if s.feed != nil {
		due = s.feed.Advance(now)
	}
	for _, ev := range append(due, ev) {
		effects, err := s.queue.Step(now, ev)
		all = append(all, effects...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Enqueue adds an executed bundle: see bundlequeue.Enqueue.
func (s *Simple) Enqueue(now time.Time, number uint64, commitment common.Hash, bundle []byte) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Enqueue{Number: number, Commitment: commitment, Bundle: bundle})
}

// ticketOf returns the ticket of a Build or a Send effect.
func ticketOf(e bundlequeue.Effect) uint64 {
	switch e := e.(type) {
	case bundlequeue.Build:
		return e.Ticket
	case bundlequeue.Send:
		return e.Ticket
	}
	return 0
}

// open returns the first job whose request the queue has not canceled in the meantime, or
// nil.
func (s *Simple) open() bundlequeue.Effect {
	for len(s.jobs) > 0 {
		if s.queue.Expects(ticketOf(s.jobs[0])) {
			return s.jobs[0]
		}
		// The queue has canceled the request, so the job is obsolete.
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
	}
	return nil
}

// CanSubmit reports whether Dequeue would return a job.
func (s *Simple) CanSubmit() bool { return s.open() != nil }

// Dequeue returns the next job: a bundle to build and submit, or a package to send
// again. It returns false if there is no job. Each job is returned once, and the
// host must answer it with MarkSubmitted or MarkFailed. In the meantime the queue
// still processes events about the bundle.
func (s *Simple) Dequeue() (Job, bool) {
	e := s.open()
	if e == nil {
		return Job{}, false
	}
	s.jobs[0] = nil
	s.jobs = s.jobs[1:]
	if build, ok := e.(bundlequeue.Build); ok {
		return Job{
			Number: build.Number, Version: build.Version, Attempt: 1, Core: build.Core, Bundle: build.Bundle,
			Anchor: build.Anchor, MinAnchor: build.MinAnchor, Prerequisites: build.Prerequisites,
			ticket: build.Ticket,
		}, true
	}
	send := e.(bundlequeue.Send)
	return Job{
		Number: send.Number, Version: send.Version, Attempt: send.Attempt, Core: send.Core, Bundle: send.Bundle,
		Package: send.Package, ticket: send.Ticket,
	}, true
}

// MarkSubmitted reports that the package of a job is about to be sent. Call it
// before the send, and send the package only if there is no error:
//
//   - [bundlequeue.ErrNotExpected] means that the job is obsolete or the package is
//     dead.
//   - [bundlequeue.ErrInadmissible] means that the package must not be sent.
//   - [ErrNotNow] means that the queue has accepted the package, and that a later
//     job requests the send.
//
// If job.Package is not zero, the package was built before and the arguments after
// job are ignored. Otherwise they describe the package that the host has just
// built. If there is a [Feed], only the prerequisites of the context matter,
// because the feed's blocks are not those of JAM. MarkSubmitted may return news
// together with an error.
func (s *Simple) MarkSubmitted(now time.Time, job Job, pkg jamq.PackageHash, context jamq.RefineContext, bundle []byte) ([]bundlequeue.Effect, error) {
	if !job.Package.IsZero() {
		return s.Step(now, bundlequeue.Sent{Ticket: job.ticket, OK: true})
	}
	if s.feed != nil {
		context.Anchor, context.LookupAnchorSlot = job.Anchor.Hash, s.queue.Finalized().Slot
	}
	effects, err := s.step(now, bundlequeue.Built{Ticket: job.ticket, Package: pkg, Context: context, Bundle: bundle})
	if err != nil {
		return s.keepJobs(effects), err
	}
	var send uint64
	for i, e := range effects {
		if e, ok := e.(bundlequeue.Send); ok && e.Package == pkg {
			send = e.Ticket
			effects = append(effects[:i], effects[i+1:]...)
			break
		}
	}
	if s.feed != nil && s.queue.Holds(pkg) {
		s.feed.Sent(jamq.Report{
			Hash: common.Hash(pkg), Package: pkg, Core: job.Core, Anchor: context.Anchor, Prerequisites: context.Prerequisites,
		})
	}
	news := s.keepJobs(effects)
	switch {
	case send == 0 && s.queue.Holds(pkg):
		return news, fmt.Errorf("%w: package %s of block %d", ErrNotNow, pkg, job.Number)
	case send == 0:
		return news, fmt.Errorf("%w: package %s of block %d is dead: do not send it", bundlequeue.ErrNotExpected, pkg, job.Number)
	}
	more, err := s.Step(now, bundlequeue.Sent{Ticket: send, OK: true})
	return append(news, more...), err
}

// MarkFailed reports that the host could not build or send the package of a
// job. The queue repeats the job after a back-off.
func (s *Simple) MarkFailed(now time.Time, job Job) ([]bundlequeue.Effect, error) {
	if job.Package.IsZero() {
		return s.Step(now, bundlequeue.BuildFailed{Ticket: job.ticket})
	}
	return s.Step(now, bundlequeue.Sent{Ticket: job.ticket})
}

// OnGuaranteed reports that a package was guaranteed. It ignores unknown packages.
func (s *Simple) OnGuaranteed(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Guaranteed)
}

// OnAccumulated reports that a package was accumulated. It ignores unknown
// packages.
func (s *Simple) OnAccumulated(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Accumulated)
}

// OnFinalized reports that the accumulation of a package is final. It ignores
// unknown packages.
func (s *Simple) OnFinalized(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Finalized)
}

func (s *Simple) tell(now time.Time, pkg jamq.PackageHash, state bundlequeue.State) ([]bundlequeue.Effect, error) {
	if s.feed != nil {
		s.feed.Tell(pkg, state)
	}
	return s.CheckTimeouts(now)
}

// OnTimeoutOrFailure reports that the host considers a package lost. If the newest
// block of the feed contains the report of the package, the next block removes the
// package from its core. Otherwise JAM has no way to end the package early, so it
// dies as it would without this call:
//
//   - A package that is not reported dies when its anchor is H blocks old, because
//     until then a guarantor may still report it.
//   - A package that is reported dies when an epoch has passed.
//
// Unknown packages are ignored.
func (s *Simple) OnTimeoutOrFailure(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	if s.feed != nil {
		s.feed.GiveUp(pkg)
	}
	return s.CheckTimeouts(now)
}

// CheckTimeouts passes the current time to the queue and to the feed. The queue
// then retries the builds and sends that are due, and packages whose time is
// over die. A host calls CheckTimeouts regularly, for example once per slot.
func (s *Simple) CheckTimeouts(now time.Time) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Tick{})
}

// Requeue makes the queue send the package of a bundle again immediately: see bundlequeue.Retry.
func (s *Simple) Requeue(now time.Time, number uint64) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Retry{Number: number})
}

// Stats returns a summary of the queue.
func (s *Simple) Stats() bundlequeue.Stats { return s.queue.Stats() }

// Queue returns the queue, for read access. The caller must not call its Step
// method.
func (s *Simple) Queue() *bundlequeue.Queue { return s.queue }
