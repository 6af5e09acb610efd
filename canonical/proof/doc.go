// Package proof makes and verifies proofs that a block or a transaction of a rollup is final. A
// verifier needs nothing but the keys of a set of JAM validators that it trusts.
//
// A proof is a chain of up to five links. Each link has a verifier and an error of its kind:
//
//	1 finality     Finality, Beefy          ErrFinality
//	2 state        statetrie.Verify, VerifyLog   ErrState, ErrOutput
//	3 commitment   VerifyCommitment         ErrCommitment
//	4 transaction  VerifyTransaction        ErrTransaction
//	5 receipt      Document.Verify          ErrReceipt
//
// Link 1 is finality. More than two thirds of the validators signed a JAM header together with the
// state root after that block. A vote contains both, because a header commits only to the state
// before its block. Alternatively, the validators signed the log of all services' outputs
// ([Beefy]).
//
// Link 2 leads from the signed root to the service's data. The state with that root contains the
// commitment that the service stored, or C(16), the list of hashes that services yielded in the
// block. If the validators signed the log, [VerifyLog] and [VerifyOutput] lead from the log to the
// yielded hash. A service yields one hash per call, for the last block that the call applied: see
// [Commitment].
//
// Link 3 is the [Commitment]. It binds the rollup block, its state roots and its work package. The
// service must provide it, since JAM has no small proof that a package was accumulated.
//
// Link 4 shows that the transaction is in the block: go-ethereum's trie with the block's
// transactions root contains the transaction.
//
// Link 5 is optional and shows the outcome of the transaction. The receipt is in the trie whose
// root is in the block's header, and the commitment contains the hash of that header.
//
// A [Document] contains all links as JSON:
//
//	d, err := proof.Parse(data)      // strict, with bounded size
//	result, err := d.Verify(trust)   // pure: no network, no clock
//	result.Transaction               // the proved transaction
//	result.Receipt                   // its status and logs, if the document has them
//	result.Steps                     // one sentence per link
//
// A document can also end at the block. [Document.VerifyBlock] then returns the final state root
// of the rollup, under which the rollup can prove accounts. JAM guarantees that the root is final,
// and the rollup guarantees that the root is correct.
//
// [Trust] contains the assumptions of the verifier: the keys of the validators, the service, and
// the prefix of the keys of its commitments. A verifier never takes them from the document. The
// command examples/verify does all of this.
//
// JAM replaces the keys of a punished validator by zeros. Such a validator counts in the size of
// the set but never votes. The same applies to other keys for which anyone can forge signatures;
// see [ValidatorKey.Validate] and [BLSKey.Validate].
//
// # Making a proof
//
// A host that has the JAM state keeps it in a statetrie.Trie, whose versions share equal nodes,
// and calls Trie.Prove. A host that has a JAM node's answer to a state request calls
// statetrie.Collect. [ProveOutput] and [ProveLog] make proofs through the output log. A host
// without the state gets the same proofs from a JAM node over JIP-2: see package
// canonical/proof/jip2proof. [Document.AddTransaction] and [Document.AddReceipt] add the last two
// links. Validators call [Precommit.Sign].
//
// # Open questions of JAM
//
// The wire format of JAM's finality votes is still a draft. [Format] isolates this package from
// it, so that a host can supply a different format such as [Grandpa]. See also [Justification].
//
// A document is about one validator set, and a [Handoff] leads from the trust in one set to the
// trust in the next. JAM does not yet define how the sets of finality, and their numbers, follow
// from the validators of its epochs. The documentation of Handoff states our assumptions and lists
// the gaps that no handoff can cross. A verifier behind such a gap needs a new [Trust] from a
// source that it trusts.
//
// # Hashes
//
// The state trie uses BLAKE2b-256 (GP D). Outputs and their log use Keccak-256 (GP E.1, E.2). The
// tests check both against public data of a real chain. The exception is the tree over two or more
// outputs of a block, which only follows the formula.
//
// All functions are pure and safe for concurrent use. A verifier does not trust any part of a
// proof: for any input, it returns an error or a true statement.
package proof
