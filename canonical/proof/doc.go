// Package proof answers a user's question: is my transaction final, and why should I believe it?
//
// Who trusts JAM's validators and nothing else follows a chain of four links, each with a verifier and an error of its own:
//
//  1. finality ([Finality], ErrFinality): more than two thirds of a validator set signed a JAM header together with the state root after it. A
//     header commits only to the state before it, so votes name both. Or they signed the log of all services' outputs ([Beefy]).
//  2. state ([VerifyState], ErrState): under that root lies what the rollup's service has stored, or the outputs of the block, C(16). Or,
//     from the log: [VerifyLog] and [VerifyOutput], with ErrOutput.
//  3. commitment ([Commitment], ErrCommitment): what the service stored binds the rollup block, its roots and the package that carried it. JAM
//     itself has no small proofs of accumulated packages: the service must do it.
//  4. transaction ([VerifyTransaction], ErrTransaction): it is in the transactions root of that block, by go-ethereum's trie.
//
// A [Document] holds a whole chain as JSON:
//
//	d, err := proof.Parse(data)          // strict, bounded
//	result, err := d.Verify(trust)       // pure: no network, no clock
//	result.Transaction                   // the proved transaction
//	result.Steps                         // why, a sentence for each link
//
// What a verifier believes beforehand is its [Trust]: the validators' keys, the service, where that keeps its commitments. It never comes
// from the document. examples/verify is all of it as a command.
//
// JAM replaces the keys of a punished validator by zeros. Such a validator
// counts in the size of the set and never votes. No other key under which
// signatures can be forged without a secret votes either: see
// [ValidatorKey.Validate] and [BLSKey.Validate].
//
// # Making a proof
//
// A host that has the JAM state keeps a [StateTrie], whose versions share what is equal, and proves with [StateTrie.Prove]; from a node
// it takes the boundary nodes of a state request: [CollectState]. [ProveOutput] and [ProveLog] prove by way of the output log,
// [ProveTransaction] in the block. [Precommit.Sign] is for validators; jamtest's sign, and its rollup service commits, so that tests have
// all of it.
//
// # What is not decided
//
// The wire format of JAM's finality votes is a draft: [Format] is the one place that knows it, and a host brings another where its network has
// another.
//
// A document is about one validator set, and a light client cannot go from an old set to the present one by documents of this package. Headers do name the keys of
// the next epoch and the state holds them, but by what rule the sets of finality follow from those, and which number a set has, JAM has not decided; a rule
// made up here would prove nothing. Who verifies takes each new set as a new [Trust] from whom he believes.
//
// # Hashes
//
// The state trie is hashed with BLAKE2b-256 (GP D), outputs and their log with Keccak-256 (GP E.1, E.2). State trie, state keys and log are
// tested on public data of a real chain. For blocks with two outputs or more no data is public: there the tree follows the formula alone.
//
// Verifiers and provers are pure and safe for concurrent use. Verifiers trust nothing in a proof: whatever it holds, the answer is an error or
// the truth.
package proof
