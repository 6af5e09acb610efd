package bundlequeue

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// Simple is a queue behind the calls that builders know: put a bundle in, take the next one out, say what became of it.
// It is the same queue with the same rules; where [Queue.Step] returns requests among its effects, Simple keeps them for
// [Simple.Dequeue] and returns only the news: [Changed], [Died] and [Failed]. The On calls need [ToldEvidence]; with chain
// evidence feed blocks by [Simple.Step].
//
// A [Failed] bundle is to be answered by [Simple.MarkTakenBack].
//
// It is not safe for concurrent use.
type Simple[B any] struct {
	queue *Queue[B]
	jobs  []Effect // Build and Send effects not taken yet
}

// NewSimple wraps a queue, which must not be stepped by anyone else. What is open in it, after a restart for example, is taken up.
func NewSimple[B any](q *Queue[B]) *Simple[B] {
	s := &Simple[B]{queue: q}
	for _, e := range q.Open() {
		if _, failed := e.(Failed[B]); !failed {
			s.jobs = append(s.jobs, e)
		}
	}
	return s
}

// Job is a bundle to be submitted.
type Job[B any] struct {
	// Number and Version name the package, Attempt counts how often it is sent: take another guarantor each time.
	Number           uint64
	Version, Attempt int
	// Core is the core whose guarantors should get it.
	Core jamq.CoreIndex
	// Package is the package to send again, with Bundle its bytes; if it is zero, one must be built of Bundle first: at the given
	// anchor, not older than MinAnchor, with exactly these prerequisites. See [Build].
	Package           jamq.PackageHash
	Bundle            B
	Offset            int
	Anchor, MinAnchor anchor.Point
	Prerequisites     []jamq.PackageHash

	ticket uint64
}

// Step feeds any event. It returns the news.
func (s *Simple[B]) Step(now time.Time, ev Event) ([]Effect, error) {
	effects, err := s.queue.Step(now, ev)
	news := effects[:0]
	for _, e := range effects {
		switch e.(type) {
		case Build[B], Send[B]:
			s.jobs = append(s.jobs, e)
		default:
			news = append(news, e)
		}
	}
	return news, err
}

// Enqueue adds an executed bundle: see [Enqueue].
func (s *Simple[B]) Enqueue(now time.Time, number uint64, commitment common.Hash, bundle B) ([]Effect, error) {
	return s.Step(now, Enqueue[B]{Number: number, Commitment: commitment, Bundle: bundle})
}

// open drops jobs that have become pointless and returns the first that has not.
func (s *Simple[B]) open() Effect {
	for len(s.jobs) > 0 {
		switch j := s.jobs[0].(type) {
		case Build[B]:
			if s.queue.builds[j.Ticket] != nil {
				return j
			}
		case Send[B]:
			if s.queue.sends[j.Ticket] != nil {
				return j
			}
		}
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
	}
	return nil
}

// CanSubmit reports whether Dequeue has a job.
func (s *Simple[B]) CanSubmit() bool { return s.open() != nil }

// Dequeue returns the next bundle to build and submit, or to submit again, and whether there is one. Each job is
// returned once and must be answered by MarkSubmitted or MarkFailed. What is heard of a bundle in between is neither lost nor undone.
func (s *Simple[B]) Dequeue() (Job[B], bool) {
	e := s.open()
	if e == nil {
		return Job[B]{}, false
	}
	s.jobs[0] = nil
	s.jobs = s.jobs[1:]
	switch e := e.(type) {
	case Build[B]:
		return Job[B]{
			Number: e.Number, Version: e.Version, Attempt: 1, Core: e.Core, Bundle: e.Bundle,
			Offset: e.Offset, Anchor: e.Anchor, MinAnchor: e.MinAnchor, Prerequisites: e.Prerequisites, ticket: e.Ticket,
		}, true
	case Send[B]:
		return Job[B]{
			Number: e.Number, Version: e.Version, Attempt: e.Attempt, Core: e.Core, Bundle: e.Bundle, Package: e.Package, ticket: e.Ticket,
		}, true
	}
	return Job[B]{}, false
}

// MarkSubmitted says that a job's package is on its way. Call it before the bytes leave, and send them only if it returns no
// error: ErrNotExpected means that the job became pointless, ErrInadmissible that the package must not be sent, ErrNotNow that a job to
// send it comes later. For a job with a Package the other arguments are not read; otherwise they are what was built. There may be news
// besides an error.
func (s *Simple[B]) MarkSubmitted(now time.Time, job Job[B], pkg jamq.PackageHash, context jamq.RefineContext, bundle B) ([]Effect, error) {
	if !job.Package.IsZero() {
		return s.Step(now, Sent{Ticket: job.ticket, OK: true})
	}
	news, err := s.Step(now, Built[B]{Ticket: job.ticket, Package: pkg, Context: context, Bundle: bundle})
	if err != nil {
		return nil, err
	}
	v := s.queue.versions[pkg]
	switch {
	case v == nil:
		return news, fmt.Errorf("%w: package %s of block %d was overtaken by the chain: do not send it", ErrNotExpected, pkg, job.Number)
	case v.ticket == 0:
		return news, fmt.Errorf("%w: package %s of block %d waits", ErrNotNow, pkg, job.Number)
	}
	more, err := s.Step(now, Sent{Ticket: v.ticket, OK: true})
	return append(news, more...), err
}

// MarkFailed says that a job could not be built or sent. It comes back after a back-off.
func (s *Simple[B]) MarkFailed(now time.Time, job Job[B]) ([]Effect, error) {
	if job.Package.IsZero() {
		return s.Step(now, BuildFailed{Ticket: job.ticket})
	}
	return s.Step(now, Sent{Ticket: job.ticket})
}

// MarkTakenBack says that the host has a failed bundle's transactions again: see [TakenBack].
func (s *Simple[B]) MarkTakenBack(now time.Time, failed Failed[B]) ([]Effect, error) {
	return s.Step(now, TakenBack{Ticket: failed.Ticket})
}

// OnGuaranteed says that a package was guaranteed. Packages of others are ignored in constant time, without allocation.
func (s *Simple[B]) OnGuaranteed(now time.Time, pkg jamq.PackageHash) ([]Effect, error) {
	return s.told(now, pkg, Guaranteed)
}

// OnAccumulated says that a package was accumulated. Packages of others are ignored.
func (s *Simple[B]) OnAccumulated(now time.Time, pkg jamq.PackageHash) ([]Effect, error) {
	return s.told(now, pkg, Accumulated)
}

// OnFinalized says that a package's accumulation is final. Packages of others are ignored.
func (s *Simple[B]) OnFinalized(now time.Time, pkg jamq.PackageHash) ([]Effect, error) {
	return s.told(now, pkg, Finalized)
}

// OnTimeoutOrFailure gives a package up: another version may follow at once. Packages of others are ignored.
func (s *Simple[B]) OnTimeoutOrFailure(now time.Time, pkg jamq.PackageHash) ([]Effect, error) {
	return s.told(now, pkg, Queued)
}

func (s *Simple[B]) told(now time.Time, pkg jamq.PackageHash, state State) ([]Effect, error) {
	if s.queue.view == nil && s.queue.versions[pkg] == nil && len(s.queue.buried) == 0 {
		return nil, nil
	}
	return s.Step(now, Told{Package: pkg, State: state})
}

// CheckTimeouts lets time pass: retries, back-offs, and with told evidence what is given up by the clock.
func (s *Simple[B]) CheckTimeouts(now time.Time) ([]Effect, error) { return s.Step(now, Tick{}) }

// Requeue asks to send a bundle's package again at once: see [Retry].
func (s *Simple[B]) Requeue(now time.Time, number uint64) ([]Effect, error) {
	return s.Step(now, Retry{Number: number})
}

// Stats returns a summary.
func (s *Simple[B]) Stats() Stats { return s.queue.Stats() }

// Queue returns the queue, to be read.
func (s *Simple[B]) Queue() *Queue[B] { return s.queue }
