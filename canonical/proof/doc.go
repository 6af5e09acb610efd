// Package proof makes and verifies proofs that a rollup's block or transaction is
// final, for verifiers that trust a set of JAM validators.
//
// A proof is a chain of links. Each has a verifier and a separate error:
//
//	1 finality     Finality, Beefy          ErrFinality
//	2 state        statetrie.Verify, VerifyLog   ErrState, ErrOutput
//	3 commitment   VerifyCommitment         ErrCommitment
//	4 transaction  VerifyTransaction        ErrTransaction
//	5 receipt      Document.Verify          ErrReceipt
//
// Link 1: more than two thirds of the validators signed a JAM header together
// with the state root after it. Votes contain both, because a header commits
// only to the state before it. Alternatively they signed the log of all
// services' outputs ([Beefy]).
//
// Link 2: the state with that root contains the data that the service stored, or
// the outputs of the block, C(16); [VerifyLog] and [VerifyOutput] lead there from
// the log. An output is about the last block of a call only: see [Commitment].
//
// Link 3: the data that the service stored binds the rollup block, its state
// roots and its work package. JAM has no small proof of an accumulated package,
// so the service must store a [Commitment].
//
// Link 4: the transaction is under the transactions root of that block, in
// go-ethereum's trie.
//
// Link 5, if the user wants the outcome: the receipt of the transaction is under
// the receipts root of the block's header, whose hash the service stored.
//
// A [Document] contains the links as JSON:
//
//	d, err := proof.Parse(data)      // strict, with bounded size
//	result, err := d.Verify(trust)   // pure: no network, no clock
//	result.Transaction               // the proved transaction
//	result.Receipt                   // its status and logs, if the document has them
//	result.Steps                     // one sentence per link
//
// A document can also end at the block: [Document.VerifyBlock] returns the rollup's
// final state root, under which the rollup proves accounts. JAM makes the root
// final; that it is right is a promise of the rollup.
//
// [Trust] has the verifier's assumptions: the keys of the validators, the
// service, and the prefix of its commitments. It never comes from the document.
// The command examples/verify does all of this.
//
// JAM replaces the keys of a punished validator by zeros. Such a validator
// counts in the size of the set and never votes. Other keys for which
// signatures can be forged without a secret never vote either; see
// [ValidatorKey.Validate] and [BLSKey.Validate].
//
// # Making a proof
//
// A host with the JAM state keeps a statetrie.Trie, whose versions share equal
// nodes, and calls its method Prove. A host with a JAM node's answer to a state
// request calls statetrie.Collect. [ProveOutput] and [ProveLog] make proofs
// through the output log, which a host without the state gets from a JAM node over
// JIP-2: see package canonical/proof/jip2proof. [Document.AddTransaction] and
// [Document.AddReceipt] add the last links. Validators call [Precommit.Sign].
//
// # Open questions of JAM
//
// The wire format of JAM's finality votes is a draft. [Format] isolates it, and
// a host can supply a different one, such as [Grandpa]. See [Justification].
//
// A document is about one validator set, and a [Handoff] leads a trust to the next
// one. JAM does not define yet how the sets of finality and their numbers follow
// from the validators of its epochs. Handoff has the assumptions, and the list of
// gaps that it cannot cross: then a verifier needs a new [Trust] from a source that
// it trusts.
//
// # Hashes
//
// The state trie uses BLAKE2b-256 (GP D). Outputs and their log use Keccak-256
// (GP E.1, E.2). Public data of a real chain tests them, except for the tree over
// two or more outputs of a block, which follows the formula only.
//
// All functions are pure and safe for concurrent use. A verifier trusts no part
// of a proof: for any input it returns an error or a true statement.
package proof
