package ubt

import "fmt"

// partial is a stem for which a proof shows only some of the 256 values. For each
// index in known, the proof shows either the value or that there is none.
type partial struct {
	name    string
	known   set
	present set // known indices that have a value
	values  [][32]byte
	others  map[span]Hash // largest nonempty spans without known indices
}

func (p *partial) get(k *Key) (value [32]byte, ok bool, err error) {
	sub := k.sub()
	switch {
	case p.name != string(k.stem()):
		return value, false, nil
	case !p.known.has(sub):
		return value, false, fmt.Errorf("%w: %x", ErrHidden, *k)
	case !p.present.has(sub):
		return value, false, nil
	}
	return p.values[p.present.rank(int(sub))], true, nil
}

// with applies writes, in ascending order of keys, and returns the new stem.
func (p *partial) with(sum Hash, writes []Write) (ref, error) {
	next := &partial{name: p.name, known: p.known, present: p.present, others: p.others}
	changed := false
	written := make(map[byte]*Write, len(writes))
	for i := range writes {
		w := &writes[i]
		value, present, err := p.get(&w.Key)
		// ErrHidden: the proof does not show this value.
		if err != nil {
			return ref{}, err
		}
		if present == !w.Deleted && (w.Deleted || value == w.Value) {
			continue
		}
		changed, written[w.Key.sub()] = true, w
		if w.Deleted {
			next.present.remove(w.Key.sub())
		} else {
			next.present.add(w.Key.sub())
		}
	}
	switch {
	case !changed:
		return ref{p, sum}, nil
	case next.present == set{} && len(p.others) == 0:
		// The last value was removed.
		return ref{}, nil
	}
	next.values = make([][32]byte, 0, next.present.len())
	for sub := range next.present.all {
		if w := written[sub]; w != nil {
			next.values = append(next.values, w.Value)
		} else {
			next.values = append(next.values, p.values[p.present.rank(int(sub))])
		}
	}
	return ref{next, unsealed}, nil
}

func (p *partial) hash(h *Hasher) Hash {
	return h.Stem([StemSize]byte([]byte(p.name)), p.fold(h, allValues))
}

// fold returns the hash over a range of the stem's values, computed from the known values
// and from the hashes that the proof has for the others.
func (p *partial) fold(h *Hasher, s span) Hash {
	switch {
	case !s.anyOf(&p.known):
		return p.others[s]
	case s.length > 1:
		left, right := s.halves()
		return h.inner(p.fold(h, left), p.fold(h, right))
	case p.present.has(s.first):
		return h.Leaf(p.values[p.present.rank(int(s.first))])
	}
	return Hash{}
}
