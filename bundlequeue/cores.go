package bundlequeue

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq"
)

// cores is the set of JAM cores that a queue sends packages to. It knows which bundle
// uses each core. No two bundles share a core (promise B4), because a core carries only
// one report at a time.
type cores struct {
	list []core
	free int // cores available to bundles
	// changed is true if a Cores event has replaced the configured list of cores. Snapshots
	// then contain the list, so that it survives a restart.
	changed bool
}

// core is one JAM core.
type core struct {
	index  jamq.CoreIndex
	holder *item // nil: free
	// leaving is true if the core has left the set but a bundle still uses it.
	leaving bool
}

// set replaces the set of cores. A core that a bundle uses stays until the bundle
// releases it.
func (c *cores) set(indices []jamq.CoreIndex) {
	before := c.list
	c.list, c.free = make([]core, 0, len(indices)), 0
	for _, index := range indices {
		now := core{index: index}
		if i := slices.IndexFunc(before, func(old core) bool { return old.index == index }); i >= 0 {
			now.holder = before[i].holder
		}
		if now.holder == nil {
			c.free++
		}
		c.list = append(c.list, now)
	}
	for _, old := range before {
		if old.holder != nil && !slices.Contains(indices, old.index) {
			old.leaving = true
			c.list = append(c.list, old)
		}
	}
}

// inUse returns the number of cores in the set, without those that are leaving.
func (c *cores) inUse() int {
	n := 0
	for i := range c.list {
		if !c.list[i].leaving {
			n++
		}
	}
	return n
}

// indices returns the cores in the set, without those that are leaving.
func (c *cores) indices() []jamq.CoreIndex {
	var out []jamq.CoreIndex
	for i := range c.list {
		if !c.list[i].leaving {
			out = append(out, c.list[i].index)
		}
	}
	return out
}

// acquire gives a bundle a core if one is free. It reports whether the bundle has one.
func (c *cores) acquire(it *item, freeOnChain func(jamq.CoreIndex) bool) bool {
	if it.holdsCore {
		return true
	}
	found := -1
	for i := range c.list {
		if c.list[i].holder != nil || c.list[i].leaving {
			continue
		}
		free := freeOnChain(c.list[i].index)
		// Take the first unused core on which the chain accepts a report in its next block. If
		// there is none, take any unused core.
		if found < 0 || free {
			found = i
		}
		if free {
			break
		}
	}
	if found < 0 {
		return false
	}
	c.free--
	c.list[found].holder = it
	it.core, it.holdsCore = c.list[found].index, true
	return true
}

// release frees the core of a bundle, if it has one, for another bundle.
func (c *cores) release(it *item) {
	if !it.holdsCore {
		return
	}
	it.holdsCore = false
	i := slices.IndexFunc(c.list, func(k core) bool { return k.holder == it })
	if c.list[i].leaving {
		c.list = slices.Delete(c.list, i, i+1)
		return
	}
	c.list[i].holder = nil
	c.free++
}

// changeCores processes a Cores event.
func (q *Queue) changeCores(ev Cores) error {
	if err := validateCores(&q.cfg.Spec, ev.Cores); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownEvent, err)
	}
	q.cores.changed = !slices.Equal(ev.Cores, q.cfg.Cores)
	q.cores.set(ev.Cores)
	return nil
}
