package ubt

// warmAtOnce is the number of paths that warm walks together. The memory cannot
// serve more at the same time.
const warmAtOnce = 32

// warm loads the nodes on the paths of writes into the processor's cache. In a
// large tree, each step down a path waits for the memory. apply would wait at each
// step of each path, while warm walks several paths at once, so that their waits
// overlap.
func warm(r ref, depth int, writes []Write) (touched byte) {
	for ; len(writes) > warmAtOnce; writes = writes[warmAtOnce:] {
		touched += walkTogether(r, depth, writes[:warmAtOnce])
	}
	// The result depends on the memory that was read, so that the compiler does not
	// remove the reads.
	return touched + walkTogether(r, depth, writes)
}

// walkTogether walks from r to the stems of at most warmAtOnce writes.
func walkTogether(r ref, depth int, writes []Write) (touched byte) {
	var at [warmAtOnce]*inner
	var stems [warmAtOnce]*stem
	root, _ := r.node.(*inner)
	for i := range writes {
		at[i] = root
	}
	for on := root != nil; on; depth++ {
		on = false
		// All paths advance together, so that the processor loads their nodes in
		// parallel.
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
