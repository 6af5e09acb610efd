package jip2

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// notification has the params of a message that a node sends for a subscription. JIP-2 specifies a
// JSON object in which Error is a string. Some nodes use the name subscriptionId for the id of the
// subscription.
type notification struct {
	Subscription   part `json:"subscription"`
	SubscriptionID part `json:"subscriptionId"`
	Result         part `json:"result"`
	Error          part `json:"error"`
}

// id returns the key of the subscription's id.
func (n *notification) id() string {
	if n.Subscription == nil {
		return idKey(n.SubscriptionID)
	}
	return idKey(n.Subscription)
}

// decodeNotification decodes the params of a message for a subscription. Besides the object of
// JIP-2 it accepts two forms that some nodes send: an array with that object, and an array of the
// id and the result.
func decodeNotification(params part) (n notification, err error) {
	list, isArray := elements(params, 2)
	switch {
	case len(list) == 2:
		return notification{Subscription: list[0], Result: list[1]}, nil
	case len(list) == 1:
		params = list[0]
	case isArray:
		return n, fmt.Errorf("%w: want an object, or an array of one or two elements", ErrMalformed)
	}
	return n, json.Unmarshal(params, &n)
}

// notify passes an update to the subscription that it names, or keeps it for a subscription that
// the client does not know yet.
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
		if method == n.id() { // some nodes put the id in its place
			method = ""
		}
		c.holdEarly(method, &n)
	}
	c.mu.Unlock()
	if s != nil {
		c.pass(&n, s)
	}
}

// pass passes an update to a subscription.
func (c *conn) pass(n *notification, s *stream) {
	if err := errorOf(n.Error); err != nil {
		s.errors.Do(func() { c.log.Warn("the JAM node sent an error for a subscription", "method", s.method, "err", err) })
		s.deliver(nil, err)
		return
	}
	s.deliver(n.Result, nil)
}

// earlyUpdates holds updates for subscriptions that the client does not know yet, by the key of the
// subscription's id: the newest update of each. JIP-2 does not promise that the answer to a
// subscribing call arrives before the first update, and nodes that send them from different threads
// may reverse them. Without earlyUpdates the first update would be lost. If the value changes
// seldom, no other update would follow for a long time.
type earlyUpdates map[string]earlyUpdate

type earlyUpdate struct {
	method string // "" if the node did not name it
	update notification
}

// maxEarly is the maximum number of early updates that a connection holds. A node can send early
// updates freely, so the number is small, and an update of more than maxShape bytes is dropped.
const maxEarly = 8

// holdEarly keeps an update for a call that may still open the update's subscription. It drops the
// update if no such call waits. The caller holds c.mu.
func (c *conn) holdEarly(method string, n *notification) {
	switch _, replaces := c.early[n.id()]; {
	case !c.opens(method), len(n.Result)+len(n.Error) > maxShape, len(c.early) >= maxEarly && !replaces:
		return
	case c.early == nil:
		c.early = make(earlyUpdates)
	}
	c.early[n.id()] = earlyUpdate{method, notification{Result: bytes.Clone(n.Result), Error: bytes.Clone(n.Error)}}
}

// takeEarly removes and returns the update that arrived before the client knew the subscription
// with the given method and id, or returns nil. It also drops the early updates that no waiting
// call can need any more. The caller holds c.mu.
func (c *conn) takeEarly(method string, id part) *notification {
	found, there := c.early[idKey(id)]
	delete(c.early, idKey(id))
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

// opens reports whether a waiting call opens a subscription with this method. The empty method
// stands for any method. The caller holds c.mu.
func (c *conn) opens(method string) bool {
	for _, r := range c.pending {
		if r.stream != nil && (method == "" || r.stream.method == method) {
			return true
		}
	}
	return false
}
