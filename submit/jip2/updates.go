package jip2

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// notification has the params of a message that a node sends for a
// subscription. In JIP-2 the params are an object whose Error is a string. Some
// nodes call the id of the subscription subscriptionId.
type notification struct {
	Subscription   part `json:"subscription"`
	SubscriptionID part `json:"subscriptionId"`
	Result         part `json:"result"`
	Error          part `json:"error"`
}

// id returns the id of the subscription as a map key: see idKey.
func (n *notification) id() string {
	if n.Subscription == nil {
		return idKey(n.SubscriptionID)
	}
	return idKey(n.Subscription)
}

// decodeNotification decodes the params of a message for a subscription.
func decodeNotification(params part) (n notification, err error) {
	list, isArray := elements(params, 2)
	switch {
	// Some nodes send an array of the id and the result.
	case len(list) == 2:
		return notification{Subscription: list[0], Result: list[1]}, nil
	// Others send an array that contains the object of JIP-2.
	case len(list) == 1:
		params = list[0]
	case isArray:
		return n, fmt.Errorf("%w: want an object, or an array of one or two elements", ErrMalformed)
	}
	return n, json.Unmarshal(params, &n)
}

// notify passes an update to its subscription, or keeps it for a later one.
func (c *conn) notify(m *message) {
	n, err := decodeNotification(m.Params)
	if err != nil {
		c.malformed.Do(func() {
			c.log.Warn("ignored a malformed notification of the JAM node", "method", excerpt([]byte(m.Method)), "params", excerpt(m.Params), "err", err)
		})
		return
	}
	c.mu.Lock()
	s := c.streams[n.id()]
	if s == nil {
		method := m.Method
		if method == n.id() { // some nodes send the id as the method
			method = ""
		}
		// The answer that opens the subscription may still arrive.
		c.holdEarly(method, &n)
	}
	c.mu.Unlock()
	if s != nil {
		c.pass(&n, s)
	}
}

// pass gives the value or the error of an update to a subscription's reader.
func (c *conn) pass(n *notification, s *stream) {
	if err := errorOf(n.Error); err != nil {
		s.errors.Do(func() { c.log.Warn("the JAM node sent an error for a subscription", "method", s.method, "err", err) })
		s.deliver(nil, err)
		return
	}
	s.deliver(n.Result, nil)
}

// earlyUpdates holds, by id, the newest update of each subscription that the client
// does not know yet. JIP-2 does not promise that the answer that opens a
// subscription arrives before its updates. Without earlyUpdates, the first update
// would be lost, and the next update might come only after a long time.
type earlyUpdates map[string]earlyUpdate

type earlyUpdate struct {
	method string // "" if the node did not name it
	update notification
}

// maxEarly is how many updates a connection keeps for subscriptions that it does not know
// yet. It is small, because a node can send any number of them. An update of more than
// maxShape bytes is not kept.
const maxEarly = 8

// holdEarly keeps an update for a waiting call that may open its subscription.
func (c *conn) holdEarly(method string, n *notification) {
	// Without such a call, the update is dropped. The caller holds c.mu.
	switch _, replaces := c.early[n.id()]; {
	case !c.opens(method), len(n.Result)+len(n.Error) > maxShape, len(c.early) >= maxEarly && !replaces:
		return
	case c.early == nil:
		c.early = make(earlyUpdates)
	}
	c.early[n.id()] = earlyUpdate{method, notification{Result: bytes.Clone(n.Result), Error: bytes.Clone(n.Error)}}
}

// takeEarly removes and returns the update that arrived before its subscription was
// known.
func (c *conn) takeEarly(method string, id part) *notification {
	found, there := c.early[idKey(id)]
	delete(c.early, idKey(id))
	// Drop the updates that no waiting call can need any more. The caller holds
	// c.mu.
	for other, held := range c.early {
		if !c.opens(held.method) {
			delete(c.early, other)
		}
	}
	if !there || found.method != "" && found.method != method {
		return nil
	}
	return &found.update
}

// opens reports whether a waiting call opens a subscription with this method.
func (c *conn) opens(method string) bool {
	// An empty method stands for any method. The caller holds c.mu.
	for _, r := range c.pending {
		if r.stream != nil && (method == "" || r.stream.method == method) {
			return true
		}
	}
	return false
}
