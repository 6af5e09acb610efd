package jip2server

import (
	"encoding/json"
	"slices"

	"github.com/jamq/jamq"
)

// subscription is a value that one peer receives whenever the value changes.
type subscription struct {
	method string
	value  func() (any, *Error)
	last   []byte
	fresh  bool // true until its answer is queued
}

// subscribe adds a subscription and returns its id. Its first value is sent later, by
// peer.begin, because the client must get the id first.
func (s *Server) subscribe(p *peer, method string, a *args) (any, *Error) {
	value := s.subscribed(method, a)
	if value == nil {
		return nil, s.cfg.unknown(method)
	}
	if e := a.done(); e != nil {
		return nil, e
	}
	p.lastID++
	id := p.lastID
	p.subs[id] = &subscription{method: method, value: value, fresh: true}
	return s.cfg.Notify.id(id), nil
}

// subscribed returns the function that reads a subscription's value, or nil for an
// unknown method.
func (s *Server) subscribed(method string, a *args) func() (any, *Error) {
	head := func(finalized bool) jamq.Block {
		if finalized {
			return s.finalized()
		}
		return s.chain.Best()
	}
	update := func(finalized bool, value func(jamq.HeaderHash) (any, *Error)) (any, *Error) {
		at := head(finalized)
		v, e := value(at.Hash)
		if s.cfg.Notify.ValuesOnly {
			return v, e
		}
		return object{"header_hash": text(at.Hash), "slot": at.Slot, "value": v}, e
	}
	switch method {
	case "subscribeBestBlock", "subscribeFinalizedBlock":
		return func() (any, *Error) { return blockOf(head(method == "subscribeFinalizedBlock")), nil }
	case "subscribeSyncStatus":
		return func() (any, *Error) { return completed, nil }
	case "subscribeServiceValue":
		service, key, finalized := next[jamq.ServiceID](a), a.blob(), next[bool](a)
		return func() (any, *Error) {
			return update(finalized, func(h jamq.HeaderHash) (any, *Error) { return s.serviceValue(h, service, key) })
		}
	case "subscribeStateValue":
		key, finalized := a.stateKey(), next[bool](a)
		return func() (any, *Error) {
			return update(finalized, func(h jamq.HeaderHash) (any, *Error) { return s.stateValue(h, key) })
		}
	case "subscribeWorkPackageStatus":
		pkg, anchor, finalized := jamq.PackageHash(a.hash()), jamq.HeaderHash(a.hash()), next[bool](a)
		return func() (any, *Error) {
			return update(finalized, func(h jamq.HeaderHash) (any, *Error) { return s.status(h, pkg, anchor) })
		}
	}
	return nil
}

func (s *Server) unsubscribe(p *peer, method string, a *args) (any, *Error) {
	id := s.cfg.Notify.readID(a)
	if e := a.done(); e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub, ok := p.subs[id]
	if !ok || sub.method != method {
		return nil, &Error{Code: codeParams, Message: "no such subscription"}
	}
	delete(p.subs, id)
	return true, nil
}

// begin sends the first values of new subscriptions. It is called after the answers
// with their ids were queued.
func (p *peer) begin() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	for id, sub := range p.subs {
		if sub.fresh {
			sub.fresh = false
			p.tell(id, sub)
		}
	}
}

// notify sends all changed values to the subscribers. The caller holds the server's
// lock.
func (s *Server) notify() {
	for p := range s.peers {
		ids := make([]uint64, 0, len(p.subs))
		for id := range p.subs {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			p.tell(id, p.subs[id])
		}
	}
}

// tell sends the subscription's value or error, if it differs from the last one.
func (p *peer) tell(id uint64, sub *subscription) {
	if sub.fresh {
		return
	}
	value, e := sub.value()
	params := object{}
	if e != nil {
		params["error"] = e.Message // a string in notifications, an object in answers
	} else {
		params["result"] = value
	}
	notify := &p.server.cfg.Notify
	raw, err := json.Marshal(notify.envelope(notify.id(id), sub.method, params))
	if err != nil || string(raw) == string(sub.last) {
		return
	}
	sub.last = raw
	p.sendRaw(raw)
}
