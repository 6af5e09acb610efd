package jamnps

import (
	"testing"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
)

// Three is a network of three nodes, with a chain, for the tests of packages on this one.
type Three struct {
	world  *world
	peers  []*guarantor
	client *Client
}

// NewThree returns a network. used makes a service look as if it was accumulated before.
func NewThree(t *testing.T, service jamq.ServiceID, used bool) *Three {
	w := newWorld(t)
	account := make([]byte, 96)
	if used {
		account[len(account)-8] = 1
	}
	w.accounts = map[statetrie.Key][]byte{statetrie.ServiceKey(service): account}
	n := &Three{world: w, peers: []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}}
	n.client = openClient(t, w, nil, n.peers...)
	w.grow(w.best, jamq.NewSlotClock(w.spec).SlotAt(time.Now()))
	w.finalize(0)
	return n
}

// Client returns a client of the network.
func (n *Three) Client() *Client { return n.client }

// Grow adds a block of the present slot, and returns the payloads that the final chain has
// accumulated.
func (n *Three) Grow() (done []string) {
	w := n.world
	w.grow(w.best, jamq.NewSlotClock(w.spec).SlotAt(time.Now())-w.best.header.Slot)
	return w.finalize(2).done
}

// Disturb cuts connections, makes a node refuse packages, and takes one away, in turn.
func (n *Three) Disturb(tick int) {
	switch tick % 12 {
	case 2:
		n.peers[0].cut()
	case 4:
		n.peers[1].set(func() { n.peers[1].refuse[133] = !n.peers[1].refuse[133] })
	case 6:
		n.peers[2].down()
	case 9:
		n.peers[2].up()
	}
}
