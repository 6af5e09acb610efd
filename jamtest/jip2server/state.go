package jip2server

import (
	"errors"
	"slices"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/jamtest"
)

// stateMethods lists the methods that read the raw state. They are from an open
// proposal for JIP-2.
var stateMethods = []string{"stateValue", "stateProof"}

// stateQuery answers the calls of stateMethods. Without jamtest.Config.Genesis the
// state is empty.
func (s *Server) stateQuery(method string, a *args) (any, *Error) {
	head := jamq.HeaderHash(a.hash())
	if method == "stateValue" {
		key := a.stateKey()
		if e := a.done(); e != nil {
			return nil, e
		}
		return s.stateValue(head, key)
	}
	query := a.stateQuery()
	limit := next[uint32](a)
	if e := a.done(); e != nil {
		return nil, e
	}
	state, e := s.trie(head)
	if e != nil {
		return nil, e
	}
	compact, complete, last, err := state.ProveQuery(query, int(limit))
	if err != nil {
		return nil, &Error{Code: codeParams, Message: err.Error()}
	}
	out := object{"proof": compact, "complete": complete}
	if !complete {
		out["proven_through"] = last[:]
	}
	return out, nil
}

// trie returns the state after a block, or an error if the node has dropped it.
func (s *Server) trie(head jamq.HeaderHash) (*statetrie.Trie, *Error) {
	if _, ok := s.state(head); !ok {
		return nil, s.pruned(head)
	}
	state, err := s.chain.State(head)
	if err != nil && !errors.Is(err, jamtest.ErrNoServices) {
		return nil, &Error{Code: codeOther, Message: err.Error()}
	}
	return state, nil
}

// stateValue returns a value from the state after a block, or null.
func (s *Server) stateValue(head jamq.HeaderHash, key statetrie.Key) (any, *Error) {
	state, e := s.trie(head)
	if e != nil {
		return nil, e
	}
	value, present := state.Get(key)
	if !present {
		return nil, nil
	}
	return append([]byte{}, value...), nil // an empty value is not null
}

// stateKey reads a key of the state.
func (a *args) stateKey() (key statetrie.Key) {
	raw := a.blob()
	if a.err == nil && len(raw) != len(key) {
		a.fail("want base64 of %d bytes", len(key))
	}
	copy(key[:], raw)
	return key
}

// stateQuery reads the parameters of a state query: the keys, the ranges, and the parts
// of the state that the client already knows.
func (a *args) stateQuery() (q statetrie.Query) {
	for _, raw := range next[[][]byte](a) {
		if len(raw) != len(statetrie.Key{}) {
			a.fail("want keys of %d bytes", len(statetrie.Key{}))
			return q
		}
		q.Keys = append(q.Keys, statetrie.Key(raw))
	}
	for _, bounds := range next[[][2][]byte](a) {
		if max(len(bounds[0]), len(bounds[1])) > len(statetrie.Key{}) {
			a.fail("want bounds of at most %d bytes", len(statetrie.Key{}))
			return q
		}
		q.Ranges = append(q.Ranges, statetrie.KeyRange{First: statetrie.PrefixRange(bounds[0]).First, Last: statetrie.PrefixRange(bounds[1]).Last})
	}
	modes := []string{"none", "keys", "keys_and_values"}
	mode := slices.Index(modes, next[string](a))
	if mode < 0 {
		a.fail("want one of %q", modes)
		return q
	}
	q.Known = statetrie.Known(mode)
	return q
}

// youngMethods returns the methods that today's nodes lack, because they are recent
// additions to JIP-2 or only proposed.
func youngMethods() []string {
	return slices.Concat(proofMethods, stateMethods, []string{"subscribeStateValue"})
}
