package jip2

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// notification has the params of a subscription's message. JIP-2 specifies an
// object, and that Error is a string. Some nodes call the id of the subscription
// subscriptionId.
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

// decodeNotification decodes the params of a subscription's message. Besides
// JIP-2's object it accepts an array with that object, and an array of the id
// and the result.
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

// notify passes an update to its subscription.
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

// earlyUpdates holds the newest update of each subscription that the client does
// not know yet, by the key of its id. JIP-2 does not say that the answer to a call
// that opens a subscription precedes the first update, and nodes that send both
// from different threads may reverse them. Without earlyUpdates the first update
// would be lost, which is the only one for a long time if the value changes seldom.
type earlyUpdates map[string]earlyUpdate

type earlyUpdate struct {
	method string // "" if the node did not name it
	update notification
}

// maxEarly is the maximum number of updates that are held. An update of more than
// maxShape bytes is not held.
const maxEarly = 8

// holdEarly holds an update for a call that may still open its subscription. It
// drops the update if no such call waits. The caller holds c.mu.
func (c *conn) holdEarly(method string, n *notification) {
	switch _, replaces := c.early[n.id()]; {
	case !c.opens(method), len(n.Result)+len(n.Error) > maxShape, len(c.early) >= maxEarly && !replaces:
		return
	case c.early == nil:
		c.early = make(earlyUpdates)
	}
	c.early[n.id()] = earlyUpdate{method, notification{Result: bytes.Clone(n.Result), Error: bytes.Clone(n.Error)}}
}

// takeEarly returns the update that arrived before a subscription with the given
// method and id was known, or nil. It drops what no waiting call can need. The
// caller holds c.mu.
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

// opens reports whether a call with this method, or any if it is "", waits for the
// id of a subscription. The caller holds c.mu.
func (c *conn) opens(method string) bool {
	for _, r := range c.pending {
		if r.stream != nil && (method == "" || r.stream.method == method) {
			return true
		}
	}
	return false
}
