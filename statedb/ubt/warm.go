package ubt

// warmAtOnce is how many ways are walked together: more than memory answers at the same time.
const warmAtOnce = 32

// warm brings the nodes that writes lead to into the processor's cache. In a large tree each step down waits for memory, and so would apply, which
// goes one way after another. Here the steps of several ways do not depend on each other, and the processor waits for them together. It
// returns something of what it has read.
func warm(r ref, depth int, writes []Write) (touched byte) {
	for ; len(writes) > warmAtOnce; writes = writes[warmAtOnce:] {
		touched += walkTogether(r, depth, writes[:warmAtOnce])
	}
	return touched + walkTogether(r, depth, writes)
}

// walkTogether goes down from a place to the stems of at most warmAtOnce writes, a level at a time.
func walkTogether(r ref, depth int, writes []Write) (touched byte) {
	var at [warmAtOnce]*inner
	var stems [warmAtOnce]*stem
	root, _ := r.node.(*inner)
	for i := range writes {
		at[i] = root
	}
	for on := root != nil; on; depth++ {
		on = false
		for i := range writes {
			if at[i] == nil {
				continue
			}
			below := at[i].nodes[bit(writes[i].Key[:], depth)]
			if at[i], _ = below.(*inner); at[i] != nil {
				on = true
			} else {
				stems[i], _ = below.(*stem)
			}
		}
	}
	for _, s := range stems[:len(writes)] {
		if s != nil {
			touched += s.nameSize
		}
	}
	for _, s := range stems[:len(writes)] {
		if s != nil {
			touched += s.packed[0]
		}
	}
	return touched
}
