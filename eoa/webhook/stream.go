package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jamq/jamq/eoa"
)

// stream is the delivery of one account's events. Each endpoint has its own place
// in it. The sender's lock protects all fields.
type stream struct {
	calls   int    // of Deliver that use it
	scanned uint64 // Seq up to which the endpoints are known
	acked   uint64 // Seq up to which the store may forget
	places  map[string]*place
}

// place is the position of an endpoint in a stream.
type place struct {
	at   uint64 // Seq up to which it has the events
	busy bool   // a goroutine posts to it
	down bool   // it has not taken the last event
	err  error  // of the last posts in the background; the next Deliver returns it
}

const (
	// page is the number of events that are read at once.
	page = 100
	// slow is how long Deliver waits for an endpoint. One that needs longer for all
	// its events goes on without it, because new events may come for the others.
	slow = time.Second
)

// Deliver posts the account's unacknowledged events to their endpoints. Each
// endpoint gets them in order and at its own pace, so that one which fails or
// does not answer holds up no other. Deliver returns when all endpoints have all
// events, or after a second. Posts to those that fail or need longer go on in the
// background until ctx ends, and later calls leave them alone meanwhile, so ctx
// must outlive the call. After an event that an endpoint has not taken in
// Config.Tries posts, it gets one post for each further event until it takes one.
//
// The store keeps an event until the last endpoint has it or DeadLetter has kept
// it. After a restart, the events that the slowest endpoint lacks are posted
// again to all. Call Deliver for the accounts of [eoa.Fleet.Undelivered], instead
// of [eoa.Deliver]. It returns the error of the store or of DeadLetter.
func (s *Sender) Deliver(ctx context.Context, store eoa.Store, a eoa.Account) error {
	st := s.use(a)
	defer s.release(a, st)
	if err := s.scan(ctx, store, a, st); err != nil {
		return err
	}
	var errs []error
	started := 0
	s.mu.Lock()
	settled := make(chan error, len(st.places))
	for url, p := range st.places {
		if !p.busy && p.at < st.scanned {
			errs = append(errs, p.err)
			p.busy, p.err = true, nil
			started++
			go s.follow(ctx, store, a, st, url, p, settled)
		}
	}
	s.mu.Unlock()
	for range started {
		errs = append(errs, <-settled)
	}
	errs = append(errs, s.acknowledge(ctx, store, a, st))
	return errors.Join(errs...)
}

// use returns the stream of an account.
func (s *Sender) use(a eoa.Account) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[a]
	if st == nil {
		st = &stream{places: map[string]*place{}}
		s.streams[a] = st
	}
	st.calls++
	return st
}

// release forgets the stream if nothing uses it and all endpoints have all events.
func (s *Sender) release(a eoa.Account, st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.calls--; st.calls == 0 && st.acked == st.scanned {
		delete(s.streams, a)
	}
}

// scan finds the endpoints of all events that it has not seen. If the store has an
// event that it had acknowledged, it has lost writes and counts events from 1, so
// that the stream begins again.
func (s *Sender) scan(ctx context.Context, store eoa.Store, a eoa.Account, st *stream) error {
	first, err := store.Events(ctx, a, 0, 1)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if len(first) > 0 && first[0].Seq <= st.acked {
		st.scanned, st.acked, st.places = 0, 0, map[string]*place{}
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		after := st.scanned
		s.mu.Unlock()
		events, err := store.Events(ctx, a, after, page)
		if err != nil || len(events) == 0 {
			return err
		}
		first := map[string]uint64{} // event of each endpoint
		for _, e := range slices.Backward(events) {
			e.Account = a
			for _, endpoint := range s.cfg.Endpoints(e) {
				first[endpoint.URL] = e.Seq
			}
		}
		s.mu.Lock()
		for url, seq := range first {
			if st.places[url] == nil {
				st.places[url] = &place{at: seq - 1}
			}
		}
		st.scanned = max(st.scanned, events[len(events)-1].Seq)
		s.mu.Unlock()
	}
}

// follow posts events to one endpoint until it has all that were scanned. It
// reports to settled once: when it ends, or when the endpoint is slow or fails.
func (s *Sender) follow(ctx context.Context, store eoa.Store, a eoa.Account, st *stream, url string, p *place, settled chan<- error) {
	var once sync.Once
	s.mu.Lock()
	st.calls++ // the stream stays
	s.mu.Unlock()
	defer s.release(a, st)
	late := func() { once.Do(func() { settled <- nil }) }
	timer := time.AfterFunc(slow, late)
	defer timer.Stop()
	err := s.catchUp(ctx, store, a, st, url, p, late)
	err = errors.Join(err, s.acknowledge(ctx, store, a, st))
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.busy, p.err = false, err; ctx.Err() != nil {
		p.err = nil // the host's wish
	}
	once.Do(func() { p.err = nil; settled <- err }) // has room
}

// catchUp posts events to one endpoint until it has all that were scanned. It
// calls late when the endpoint is slow or fails.
func (s *Sender) catchUp(ctx context.Context, store eoa.Store, a eoa.Account, st *stream, url string, p *place, late func()) error {
	for {
		s.mu.Lock()
		at, to := p.at, st.scanned
		s.mu.Unlock()
		if at >= to {
			return nil
		}
		events, err := store.Events(ctx, a, at, page)
		if err != nil {
			return err
		}
		if len(events) == 0 { // the store has dropped the rest
			events = []eoa.Event{{Seq: to}}
		}
		for _, e := range events {
			e.Account = a
			if err := s.pass(ctx, url, e, p, late); err != nil {
				return err
			}
			s.mu.Lock()
			p.at = e.Seq
			s.mu.Unlock()
		}
	}
}

// pass delivers an event to the endpoints with the given URL, or keeps it as a
// dead letter.
func (s *Sender) pass(ctx context.Context, url string, e eoa.Event, p *place, late func()) error {
	body, err := json.Marshal(e)
	if err != nil || e.Kind == 0 {
		return err
	}
	for _, endpoint := range s.cfg.Endpoints(e) {
		if endpoint.URL != url {
			continue
		}
		tries := s.cfg.Tries
		if p.down {
			tries = 1
		}
		reason := s.deliver(ctx, endpoint, body, tries, late)
		p.down = reason != nil // only this goroutine uses it
		if err := s.keep(ctx, url, e, reason); err != nil {
			return err
		}
	}
	return nil
}

// acknowledge lets the store forget the events that all endpoints have.
func (s *Sender) acknowledge(ctx context.Context, store eoa.Store, a eoa.Account, st *stream) error {
	s.mu.Lock()
	through := st.scanned
	for _, p := range st.places {
		through = min(through, p.at)
	}
	done := through <= st.acked
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := store.Acknowledge(ctx, a, through); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.acked = max(st.acked, through)
	return nil
}
