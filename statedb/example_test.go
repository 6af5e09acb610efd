package statedb_test

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/statedb"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var (
	alice = common.Address{0xa1}
	bob   = common.Address{0xb0}
)

// fund commits an account with a balance on the empty state, and makes that canonical.
func fund(store *statedb.Store) common.Hash {
	view, err := store.View(statedb.EmptyRoot)
	must(err)
	must(view.SetAccount(alice, statedb.Account{Nonce: 1, Balance: uint256.NewInt(100)}))
	root, err := view.Commit()
	must(err)
	must(store.SetCanonical(root))
	return root
}

// pay is a block: it moves 30 from alice to bob.
func pay(view *statedb.View) {
	from, to := view.Account(alice), view.Account(bob)
	from.Nonce++
	from.Balance.SubUint64(from.Balance, 30)
	to.Balance.AddUint64(to.Balance, 30)
	must(view.SetAccount(alice, from))
	must(view.SetAccount(bob, to))
}

// Two views of one root know nothing of each other, and neither moves the canonical root.
func Example() {
	store := statedb.NewStore()
	genesis := fund(store)
	one, err := store.View(genesis)
	must(err)
	two := one.Copy()
	pay(one)
	fmt.Println("one:", one.Account(alice).Balance, "two:", two.Account(alice).Balance)
	root, err := one.Commit()
	must(err)
	fmt.Println("published:", store.Has(root), "canonical:", store.Canonical() == root)
	// Output:
	// one: 70 two: 100
	// published: true canonical: false
}

// A builder proves a block; a guarantor without any state executes it again on the witness.
func ExampleView_Witness() {
	store := statedb.NewStore()
	preRoot := fund(store)

	builder, err := store.View(preRoot)
	must(err)
	pay(builder)
	witness, err := builder.Witness()
	must(err)
	encoded := witness.Encode()
	postRoot, err := builder.Commit()
	must(err)

	received, err := statedb.ParseWitness(encoded)
	must(err)
	guarantor, err := statedb.NewStateless(received, preRoot)
	must(err)
	pay(guarantor)
	root, err := guarantor.Root()
	must(err)
	fmt.Println("same root:", root == postRoot, "nothing more in it:", guarantor.Matches(received) == nil)

	guarantor.Storage(bob, common.Hash{1})
	fmt.Println("other keys:", errors.Is(guarantor.Err(), statedb.ErrNotInWitness))
	// Output:
	// same root: true nothing more in it: true
	// other keys: true
}

// A host that has the writes already need not execute: Verify returns the root after them.
func ExampleVerify() {
	store := statedb.NewStore()
	preRoot := fund(store)
	view, err := store.View(preRoot)
	must(err)
	pay(view)
	witness, err := view.Witness()
	must(err)
	postRoot, err := statedb.Verify(witness, preRoot, view.Writes())
	must(err)
	root, err := view.Root()
	must(err)
	fmt.Println(postRoot == root)
	_, err = statedb.Verify(witness, preRoot, view.Writes()[1:])
	fmt.Println(errors.Is(err, statedb.ErrWitness))
	// Output:
	// true
	// true
}

// A transaction that fails leaves its reads in the block, and none of its
// writes. One that is left out of the block leaves nothing.
func ExampleView_Revert() {
	store := statedb.NewStore()
	view, err := store.View(fund(store))
	must(err)
	writes, reads := view.Snapshot(), view.Mark()
	pay(view)
	view.Revert(writes)
	fmt.Println("failed:", len(view.Writes()), "writes,", len(view.Reads()), "reads")
	view.Rewind(reads)
	fmt.Println("left out:", len(view.Writes()), "writes,", len(view.Reads()), "reads")
	// Output:
	// failed: 0 writes, 4 reads
	// left out: 0 writes, 0 reads
}

// A view can be put on another root for a while, which stays until it is let go.
func ExampleView_Pin() {
	store := statedb.NewStore()
	genesis := fund(store)
	view, err := store.View(genesis)
	must(err)
	pay(view)
	head, err := view.Commit()
	must(err)
	must(store.SetCanonical(head))

	must(view.Pin(genesis))
	fmt.Println("then:", view.Account(alice).Balance)
	fmt.Println("discard:", errors.Is(store.Discard(genesis), statedb.ErrInUse))
	must(view.Unpin())
	fmt.Println("now:", view.Account(alice).Balance)
	// Output:
	// then: 100
	// discard: true
	// now: 70
}

// Hosts that call CommitAsCanonical on the state can do so on the node's
// facade, but not on a copy.
func ExampleFacade() {
	store := statedb.NewStore()
	own, err := store.Facade(statedb.CloneErrors())
	must(err)
	clone := own.Copy()
	clone.SetStorage(alice, common.Hash{}, common.Hash{1})
	_, err = clone.CommitAsCanonical()
	fmt.Println(errors.Is(err, statedb.ErrClone))
	own.SetStorage(alice, common.Hash{}, common.Hash{2})
	root, err := own.CommitAsCanonical()
	must(err)
	fmt.Println(root == store.Canonical())
	// Output:
	// true
	// true
}
