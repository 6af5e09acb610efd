package told

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// Simple is a queue behind the calls that builders know: put a bundle in, take the next one out,
// say what became of it. It is the same queue with the same rules. Where bundlequeue.Queue.Step
// returns requests among its effects, Simple keeps them for [Simple.Dequeue] and returns only the
// news: bundlequeue.Changed, Died, Failed and Resurrected.
//
// The host answers each Failed by [Simple.MarkTakenBack]. The On calls need [Evidence]; for a queue
// with chain evidence feed blocks by [Simple.Step].
//
// A Simple is not safe for concurrent use.
type Simple[B any] struct {
	queue *bundlequeue.Queue[B]
	told  *Evidence            // nil for a queue with other evidence
	jobs  []bundlequeue.Effect // Build and Send effects not taken yet
}

// New returns an empty queue with told evidence. The error wraps [ErrInvalidConfig] or
// bundlequeue.ErrInvalidConfig.
func New[B any](cfg bundlequeue.Config, told Config) (*Simple[B], error) {
	evidence, err := NewEvidence(cfg.Spec, told)
	if err != nil {
		return nil, err
	}
	q, err := bundlequeue.NewWith[B](cfg, evidence)
	if err != nil {
		return nil, err
	}
	return &Simple[B]{queue: q, told: evidence}, nil
}

// Restore makes a Simple of a snapshot that [Simple.AppendSnapshot] wrote. The news are the failed
// bundles that the host has not answered: whether it took them back before the crash, it knows by
// their tickets or contents. The errors are those of bundlequeue.Restore.
func Restore[B any](cfg bundlequeue.Config, told Config, codec bundlequeue.Codec[B], snapshot []byte) (*Simple[B], []bundlequeue.Effect, error) {
	var evidence *Evidence
	q, err := bundlequeue.RestoreWith(cfg, codec, snapshot, func(b []byte) (_ bundlequeue.Evidence, err error) {
		evidence, err = RestoreEvidence(cfg.Spec, told, b)
		return evidence, err
	})
	if err != nil {
		return nil, nil, err
	}
	s, news := NewSimple(q)
	s.told = evidence
	return s, news, nil
}

// NewSimple wraps a queue of any evidence, which must not be stepped by another caller. It takes up
// the requests that are open in it, after a restart for example, and returns the failed bundles
// that the host has not answered.
func NewSimple[B any](q *bundlequeue.Queue[B]) (*Simple[B], []bundlequeue.Effect) {
	s := &Simple[B]{queue: q}
	return s, s.keepJobs(q.Open())
}

// keepJobs puts Build and Send effects aside and returns the others.
func (s *Simple[B]) keepJobs(effects []bundlequeue.Effect) []bundlequeue.Effect {
	news := effects[:0]
	for _, e := range effects {
		switch e.(type) {
		case bundlequeue.Build[B], bundlequeue.Send[B]:
			s.jobs = append(s.jobs, e)
		default:
			news = append(news, e)
		}
	}
	return news
}

// AppendSnapshot appends everything that the queue knows: see bundlequeue.AppendSnapshot.
func (s *Simple[B]) AppendSnapshot(b []byte, codec bundlequeue.Codec[B]) []byte {
	return bundlequeue.AppendSnapshot(b, codec, s.queue)
}

// Job is a bundle to be submitted.
type Job[B any] struct {
	// Number is the rollup block, Version counts its packages from 1, Attempt the sends of a
	// package. Take another guarantor for each attempt.
	Number           uint64
	Version, Attempt int
	// Core is the core whose guarantors should get it.
	Core jamq.CoreIndex
	// Package is the package to send again; zero if one must be built first.
	Package jamq.PackageHash
	// Bundle holds the bytes of Package, or else what the package is to be built from.
	Bundle B
	// Offset, Anchor, MinAnchor and Prerequisites say how to build: see bundlequeue.Build.
	Offset            int
	Anchor, MinAnchor anchor.Point
	Prerequisites     []jamq.PackageHash

	ticket uint64
}

// Step feeds any event. It returns the news.
func (s *Simple[B]) Step(now time.Time, ev bundlequeue.Event) ([]bundlequeue.Effect, error) {
	effects, err := s.queue.Step(now, ev)
	return s.keepJobs(effects), err
}

// Enqueue adds an executed bundle: see bundlequeue.Enqueue.
func (s *Simple[B]) Enqueue(now time.Time, number uint64, commitment common.Hash, bundle B) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Enqueue[B]{Number: number, Commitment: commitment, Bundle: bundle})
}

// ticketOf returns the ticket of a Build or a Send effect.
func ticketOf[B any](e bundlequeue.Effect) uint64 {
	switch e := e.(type) {
	case bundlequeue.Build[B]:
		return e.Ticket
	case bundlequeue.Send[B]:
		return e.Ticket
	}
	return 0
}

// open drops jobs that have become pointless and returns the first one that has not, or nil.
func (s *Simple[B]) open() bundlequeue.Effect {
	for len(s.jobs) > 0 {
		if s.queue.Expects(ticketOf[B](s.jobs[0])) {
			return s.jobs[0]
		}
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
	}
	return nil
}

// CanSubmit reports whether Dequeue has a job.
func (s *Simple[B]) CanSubmit() bool { return s.open() != nil }

// Dequeue returns the next bundle to build and submit, or to submit again, and whether there is
// one. Each job is returned once, and must be answered by MarkSubmitted or MarkFailed. Events about
// the bundle in between are neither lost nor undone.
func (s *Simple[B]) Dequeue() (Job[B], bool) {
	e := s.open()
	if e == nil {
		return Job[B]{}, false
	}
	s.jobs[0] = nil
	s.jobs = s.jobs[1:]
	if build, ok := e.(bundlequeue.Build[B]); ok {
		return Job[B]{
			Number: build.Number, Version: build.Version, Attempt: 1, Core: build.Core, Bundle: build.Bundle,
			Offset: build.Offset, Anchor: build.Anchor, MinAnchor: build.MinAnchor, Prerequisites: build.Prerequisites,
			ticket: build.Ticket,
		}, true
	}
	send := e.(bundlequeue.Send[B])
	return Job[B]{
		Number: send.Number, Version: send.Version, Attempt: send.Attempt, Core: send.Core, Bundle: send.Bundle,
		Package: send.Package, ticket: send.Ticket,
	}, true
}

// MarkSubmitted says that a job's package is about to leave. Call it before the bytes leave, and
// send them only if it returns no error:
//   - bundlequeue.ErrNotExpected: the job became pointless;
//   - bundlequeue.ErrInadmissible: the package must not be sent;
//   - [ErrNotNow]: the package was taken, and a job to send it comes later.
//
// For a job with a Package the other arguments are not read; otherwise they describe what was
// built. News can come with an error.
func (s *Simple[B]) MarkSubmitted(now time.Time, job Job[B], pkg jamq.PackageHash, context jamq.RefineContext, bundle B) ([]bundlequeue.Effect, error) {
	if !job.Package.IsZero() {
		return s.Step(now, bundlequeue.Sent{Ticket: job.ticket, OK: true})
	}
	effects, err := s.queue.Step(now, bundlequeue.Built[B]{Ticket: job.ticket, Package: pkg, Context: context, Bundle: bundle})
	if err != nil {
		return nil, err
	}
	var send uint64
	for i, e := range effects {
		if e, ok := e.(bundlequeue.Send[B]); ok && e.Package == pkg {
			send = e.Ticket
			effects = append(effects[:i], effects[i+1:]...)
			break
		}
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

// MarkFailed says that a job could not be built or sent. It comes back after a back-off.
func (s *Simple[B]) MarkFailed(now time.Time, job Job[B]) ([]bundlequeue.Effect, error) {
	if job.Package.IsZero() {
		return s.Step(now, bundlequeue.BuildFailed{Ticket: job.ticket})
	}
	return s.Step(now, bundlequeue.Sent{Ticket: job.ticket})
}

// MarkTakenBack says that the host has a failed bundle's transactions again: see
// bundlequeue.TakenBack.
func (s *Simple[B]) MarkTakenBack(now time.Time, failed bundlequeue.Failed[B]) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.TakenBack{Ticket: failed.Ticket})
}

// OnGuaranteed says that a package was guaranteed. Packages of others are ignored in constant time,
// without allocation.
func (s *Simple[B]) OnGuaranteed(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Guaranteed)
}

// OnAccumulated says that a package was accumulated. Packages of others are ignored.
func (s *Simple[B]) OnAccumulated(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Accumulated)
}

// OnFinalized says that a package's accumulation is final. Packages of others are ignored.
func (s *Simple[B]) OnFinalized(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Finalized)
}

// OnTimeoutOrFailure gives a package up: another version may follow at once. Packages of others are
// ignored.
func (s *Simple[B]) OnTimeoutOrFailure(now time.Time, pkg jamq.PackageHash) ([]bundlequeue.Effect, error) {
	return s.tell(now, pkg, bundlequeue.Queued)
}

func (s *Simple[B]) tell(now time.Time, pkg jamq.PackageHash, state bundlequeue.State) ([]bundlequeue.Effect, error) {
	if s.told != nil && s.told.fates[pkg] == nil && len(s.told.buried) == 0 {
		return nil, nil
	}
	return s.Step(now, bundlequeue.Told{Package: pkg, State: state})
}

// CheckTimeouts lets time pass: retries, back-offs, and what the clock gives up.
func (s *Simple[B]) CheckTimeouts(now time.Time) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Tick{})
}

// Requeue asks to send a bundle's package again at once: see bundlequeue.Retry.
func (s *Simple[B]) Requeue(now time.Time, number uint64) ([]bundlequeue.Effect, error) {
	return s.Step(now, bundlequeue.Retry{Number: number})
}

// Stats returns a summary. With told evidence it includes what the evidence rejected.
func (s *Simple[B]) Stats() bundlequeue.Stats {
	stats := s.queue.Stats()
	if s.told != nil {
		stats.Totals.DuplicateGuaranteeRejected += s.told.stats.DuplicateGuarantees
		stats.Totals.DuplicateAccumulateRejected += s.told.stats.DuplicateAccumulations
		stats.Totals.AccumulatedAfterFailed += s.told.stats.AccumulatedAfterFailed
	}
	return stats
}

// Queue returns the queue. It must only be read.
func (s *Simple[B]) Queue() *bundlequeue.Queue[B] { return s.queue }
