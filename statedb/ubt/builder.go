package ubt

import "fmt"

// builderBatch is how many values a Builder adds to the tree and hashes at once.
const builderBatch = 4096

// Builder builds a tree from all of its values, which must be added in the order of
// their keys. Besides the tree, it needs memory for only one batch of values.
// Create a Builder with [NewBuilder], and use it from one goroutine only.
type Builder struct {
	sealer sealer
	root   ref
	batch  []Write
	last   Key
	some   bool // last is set
}

// NewBuilder returns a builder of an empty tree.
func NewBuilder(h *Hasher) *Builder { return &Builder{sealer: sealer{h: h}} }

// Add adds a value. The key must be greater than the key of the previous value;
// otherwise the error wraps ErrOrder, and the value is not added.
func (b *Builder) Add(k Key, value [32]byte) error {
	if b.some && b.last.Compare(k) >= 0 {
		return fmt.Errorf("%w: %x after %x", ErrOrder, k, b.last)
	}
	// A batch ends only between two stems, so that no stem is built twice.
	if len(b.batch) >= builderBatch && string(b.last.stem()) != string(k.stem()) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.batch = append(b.batch, Write{Key: k, Value: value})
	b.last, b.some = k, true
	return nil
}

// Tree returns the tree with the values added so far.
func (b *Builder) Tree() (Tree, error) {
	if err := b.flush(); err != nil {
		return Tree{}, err
	}
	return Tree{b.root}, nil
}

func (b *Builder) flush() error {
	root, err := apply(b.sealer.h, b.root, 0, b.batch)
	if err != nil {
		return err
	}
	root.sum = b.sealer.seal(root, 0)
	b.root, b.batch = root, b.batch[:0]
	return nil
}
