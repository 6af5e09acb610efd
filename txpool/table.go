package txpool

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
)

// table finds values by hash or address. It is a map by the first eight bytes
// of the key, which is a third of the size of a map by the whole key and
// faster. Values whose first eight bytes are taken, which do not happen by
// chance, are in a separate map.
type table[K comparable, V keyed[K]] struct {
	prefix func(K) uint64
	first  map[uint64]V
	twins  map[K]V
}

// keyed is a value that knows its key, and the key's first eight bytes.
type keyed[K comparable] interface {
	comparable
	key() K
	keyPrefix() uint64
}

func (e *entry) key() common.Hash      { return e.tx.Hash() }
func (e *entry) keyPrefix() uint64     { return e.prefix }
func (a *account) key() common.Address { return a.address }
func (a *account) keyPrefix() uint64   { return addressPrefix(a.address) }

func hashPrefix(h common.Hash) uint64       { return binary.LittleEndian.Uint64(h[:]) }
func addressPrefix(a common.Address) uint64 { return binary.LittleEndian.Uint64(a[:]) }

func newTable[K comparable, V keyed[K]](prefix func(K) uint64) table[K, V] {
	return table[K, V]{prefix, make(map[uint64]V), make(map[K]V)}
}

func (t *table[K, V]) len() int { return len(t.first) + len(t.twins) }

// get returns the value of a key, or the zero value.
func (t *table[K, V]) get(key K) V {
	var none V
	if v, there := t.first[t.prefix(key)]; there && v.key() == key {
		return v
	}
	if len(t.twins) == 0 {
		return none
	}
	return t.twins[key]
}

// put adds a value whose key is absent.
func (t *table[K, V]) put(v V) {
	at := v.keyPrefix()
	if _, taken := t.first[at]; taken {
		t.twins[v.key()] = v
		return
	}
	t.first[at] = v
}

// remove removes a value that is present.
func (t *table[K, V]) remove(v V) {
	at := v.keyPrefix()
	if len(t.twins) > 0 && t.first[at] != v {
		delete(t.twins, v.key())
		return
	}
	delete(t.first, at)
}
