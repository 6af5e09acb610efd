package txpool

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// recent remembers for a limited time what happened to transactions, for example why
// they left. It has the newest ones, so its size is bounded. Times are in Unix
// nanoseconds.
type recent[V any] struct {
	most   int
	lasts  time.Duration
	byHash map[common.Hash]stamped[V]
	queue  []stamped[common.Hash] // oldest first, possibly outdated
}

type stamped[V any] struct {
	value V
	at    int64
}

func newRecent[V any](most int, lasts time.Duration) recent[V] {
	return recent[V]{most: most, lasts: lasts, byHash: make(map[common.Hash]stamped[V])}
}

// put remembers a transaction, with a value.
func (r *recent[V]) put(hash common.Hash, value V, at int64) {
	r.byHash[hash] = stamped[V]{value, at}
	r.queue = append(r.queue, stamped[common.Hash]{hash, at})
	r.prune(at)
}

// prune forgets transactions that are too old or too many.
func (r *recent[V]) prune(now int64) {
	for len(r.queue) > 0 && (len(r.queue) > r.most || r.left(r.queue[0].at, now) <= 0) {
		oldest := r.queue[0]
		r.queue = r.queue[1:]
		if r.byHash[oldest.value].at == oldest.at {
			delete(r.byHash, oldest.value)
		}
	}
}

// left returns for how long something is remembered.
func (r *recent[V]) left(at, now int64) time.Duration { return r.lasts - time.Duration(now-at) }

// find returns the value of a transaction, and for how long it is remembered. This
// is 0 if it is not.
func (r *recent[V]) find(hash common.Hash, now int64) (value V, left time.Duration) {
	if one, there := r.byHash[hash]; there && r.left(one.at, now) > 0 {
		return one.value, r.left(one.at, now)
	}
	return value, 0
}

// forget forgets a transaction, and reports whether it was remembered.
func (r *recent[V]) forget(hash common.Hash) bool {
	_, there := r.byHash[hash]
	delete(r.byHash, hash)
	return there
}

// all returns the remembered values, oldest first.
func (r *recent[V]) all(now int64) (all []V) {
	for _, q := range r.queue {
		if one, there := r.byHash[q.value]; there && one.at == q.at && r.left(q.at, now) > 0 {
			all = append(all, one.value)
		}
	}
	return all
}
