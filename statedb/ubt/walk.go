package ubt

// All calls yield for each key and value, in the order of the keys, until yield
// returns false. In a tree that was opened from a proof, All skips the hidden
// parts.
func (t Tree) All(yield func(Key, [32]byte) bool) { walk(t.root.node, yield) }

// walk implements All for a subtree. It returns false if yield has returned false.
func walk(n node, yield func(Key, [32]byte) bool) bool {
	switch n := n.(type) {
	case *inner:
		return walk(n.nodes[0], yield) && walk(n.nodes[1], yield)
	case *chain:
		return walk(n.below.node, yield)
	case *stem:
		return values(n.name(), &n.present, n.at, yield)
	case *partial:
		return values(n.name, &n.present, func(rank int) [32]byte { return n.values[rank] }, yield)
	}
	return true
}

func values(name string, present *set, at func(rank int) [32]byte, yield func(Key, [32]byte) bool) bool {
	var k Key
	copy(k[:], name)
	rank := 0
	for sub := range present.all {
		k[StemSize] = sub
		if !yield(k, at(rank)) {
			return false
		}
		rank++
	}
	return true
}

// Diff iterates over the writes that turn old into t, in the order of the keys. It
// skips the subtrees that both have in common, so the cost depends only on the
// differences. If a tree was opened from a proof, Diff skips its hidden parts, and
// the stems of which the proof shows only some values.
func (t Tree) Diff(old Tree) func(yield func(Write) bool) {
	return func(yield func(Write) bool) { diff(old.root, t.root, 0, yield) }
}

// diff implements Diff for a subtree. It returns false if yield has returned false.
func diff(old, now ref, depth int, yield func(Write) bool) bool {
	same := old.sum == now.sum && old.sum != unsealed // the rest of a chain is unsealed
	if same || old.opaque() || now.opaque() {
		return true
	}
	a, oldStem := old.node.(*stem)
	b, newStem := now.node.(*stem)
	if (oldStem || old.empty()) && (newStem || now.empty()) {
		return diffStems(a, b, yield)
	}
	oldLeft, oldRight, _ := children(old, depth) // no hidden parts here
	newLeft, newRight, _ := children(now, depth)
	return diff(oldLeft, newLeft, depth+1, yield) && diff(oldRight, newRight, depth+1, yield)
}

// diffStems calls yield for each difference between two stems; either may be nil.
func diffStems(old, now *stem, yield func(Write) bool) bool {
	switch {
	case old != nil && now != nil && old.name() != now.name():
		if old.name() < now.name() {
			return diffStems(old, nil, yield) && diffStems(nil, now, yield)
		}
		return diffStems(nil, now, yield) && diffStems(old, nil, yield)
	case old == nil:
		old = &stem{packed: now.name(), nameSize: now.nameSize}
	case now == nil:
		now = &stem{packed: old.name(), nameSize: old.nameSize}
	}
	w := Write{}
	copy(w.Key[:], now.name())
	union := old.present
	for i := range union {
		union[i] |= now.present[i]
	}
	for sub := range union.all {
		was, wasThere := old.get(sub)
		value, there := now.get(sub)
		w.Key[StemSize], w.Value, w.Deleted = sub, value, !there
		if (there != wasThere || was != value) && !yield(w) {
			return false
		}
	}
	return true
}
