package proof

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq/canonical/statetrie"
)

// Version is the version of the documents that this package writes and reads.
const Version = 1

// MaxDocument is the maximum size of a document in bytes of JSON. For comparison,
// the signatures of 1023 validators need about 200 KB.
const MaxDocument = 4 << 20

// Document is a complete proof for one transaction of a rollup block, with or
// without its receipt, or for the block only. It contains exactly one of three ways
// from the validators' signatures to the commitment:
//
//	Finality, Storage   the service has stored the commitment
//	Finality, Outputs   the hash of the commitment is in C(16) of the final
//	                    block, which must be the one that accumulated the package
//	Beefy, Log          the hash is among the outputs of a block in the log
//
// The second and the third way exist only for a commitment that the service
// yielded. If one call of accumulate applied several rollup blocks, only the
// commitment to the last of them was yielded, and a proof of an earlier one must go
// through the storage.
type Document struct {
	// Version is [Version].
	Version int `json:"version"`
	// Claim is the statement that the document proves.
	Claim Claim `json:"claim"`
	// Finality or Beefy is the first link. Exactly one of the two is set.
	Finality *Finality `json:"finality,omitempty"`
	Beefy    *Beefy    `json:"beefy,omitempty"`
	// Storage, Outputs or Log is the second link: from the final block, or the signed log, to
	// the commitment that the service published. Exactly one of the three is set.
	Storage *StorageProof `json:"storage,omitempty"`
	Outputs *ChapterProof `json:"outputs,omitempty"`
	Log     *YieldProof   `json:"log,omitempty"`
	// Commitment is the third link: the encoded [Commitment] to the rollup block that the
	// rollup's service has stored or yielded. It contains the transactions root of the block.
	Commitment hexutil.Bytes `json:"commitment"`
	// Transaction is the fourth link: from the transactions root in the commitment to the
	// transaction. It is nil if the document is about the block only.
	Transaction *TransactionProof `json:"transaction,omitempty"`
	// Receipt is the fifth link: from the hash of the rollup block to the receipt of the
	// transaction. It is nil if the document does not prove whether the transaction succeeded.
	Receipt *ReceiptProof `json:"receipt,omitempty"`
}

// StorageProof proves, under a JAM state root, that the service's storage contains
// the commitment.
type StorageProof struct {
	// Nodes are the nodes of the state trie from the root to the leaf.
	Nodes []statetrie.Node `json:"nodes"`
}

// ChapterProof proves, under a JAM state root, the value of one chapter, that is, one
// part of the JAM state. In a document the chapter is C(16), which contains the hash of
// the commitment; a [Handoff] uses C(4) and C(8).
type ChapterProof struct {
	// Nodes are the nodes of the state trie from the root to the leaf. Value is the encoded
	// chapter.
	Nodes []statetrie.Node `json:"nodes"`
	Value hexutil.Bytes    `json:"value"`
}

// YieldProof proves, under the super-peak of the output log, that the service
// yielded the hash of the commitment.
type YieldProof struct {
	// Output proves that the service's hash is among those that were yielded in one JAM block,
	// and Log proves that this block is in the log with the signed super-peak.
	Output OutputProof `json:"output"`
	Log    LogProof    `json:"log"`
}

// TransactionProof proves that the block with the given transactions root contains
// the transaction.
type TransactionProof struct {
	// Index is the position of the transaction in the block, from 0. Nodes are the nodes of the
	// transaction trie from the root to the leaf.
	Index int             `json:"index"`
	Nodes []hexutil.Bytes `json:"nodes"`
}

// ReceiptProof proves that the rollup block with the given hash has the receipt of
// the document's transaction.
type ReceiptProof struct {
	// Header is the block's header in the encoding of Ethereum (RLP). Its hash must be the
	// block hash in the commitment.
	Header hexutil.Bytes `json:"header"`
	// Nodes are the nodes of the receipt trie from the root to the leaf.
	Nodes []hexutil.Bytes `json:"nodes"`
}

// Parse decodes a document of at most [MaxDocument] bytes. It refuses unknown,
// repeated and missing names, but it does not verify any link: call
// [Document.Verify] for that. The error wraps ErrMalformed.
func Parse(data []byte) (*Document, error) {
	d := new(Document)
	if err := parse(data, d); err != nil {
		return nil, err
	}
	return d, d.route()
}

// parse decodes a document or a handoff into v. The error wraps ErrMalformed.
func parse(data []byte, v any) error {
	if len(data) > MaxDocument {
		return fmt.Errorf("%w: %d bytes, want at most %d", ErrMalformed, len(data), MaxDocument)
	}
	var version struct{ Version int }
	if err := json.Unmarshal(data, &version); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if version.Version != Version {
		return fmt.Errorf("%w: version %d, want %d", ErrMalformed, version.Version, Version)
	}
	if err := decodeStrictly(data, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// route checks that exactly one way leads from the signatures of the validators to the
// commitment, and that the document has a link for each part of its claim.
func (d *Document) route() error {
	// A claim about a transaction needs the link to the transaction, and a link to a receipt
	// needs a transaction.
	switch named := d.Claim.Transaction != (common.Hash{}); {
	case named != (d.Transaction != nil):
		return fmt.Errorf("%w: want a transaction in the claim and a link to it, or neither", ErrMalformed)
	case d.Receipt != nil && !named:
		return fmt.Errorf("%w: a receipt without its transaction", ErrMalformed)
	}
	type has struct{ finality, beefy, storage, outputs, log bool }
	switch (has{d.Finality != nil, d.Beefy != nil, d.Storage != nil, d.Outputs != nil, d.Log != nil}) {
	case has{finality: true, storage: true}, has{finality: true, outputs: true}, has{beefy: true, log: true}:
		return nil
	}
	return fmt.Errorf("%w: want finality with storage or with outputs, or beefy with log, and nothing else", ErrMalformed)
}

// AddTransaction turns a proof that a rollup block is final into a proof that the block's
// transaction at the given index is final. It sets the claim, and adds the nodes that
// prove the transaction. Only a host that has the whole block can do this. The error wraps
// ErrTransaction if the block has no transaction with this index.
func (d *Document) AddTransaction(txs types.Transactions, index int) error {
	nodes, err := ProveTransaction(txs, index)
	if err != nil {
		return err
	}
	d.Claim.Transaction = txs[index].Hash()
	d.Transaction = &TransactionProof{Index: index, Nodes: hexNodes(nodes)}
	return nil
}

// Result is the statement that a document proves.
type Result struct {
	// Transaction is the final transaction. It is nil if the document is about the block only.
	Transaction *types.Transaction
	// Receipt is the outcome of the transaction, or nil if the document does not prove one.
	// Only some fields are proved: Type, Status, CumulativeGasUsed, Bloom and, in Logs, the
	// addresses, topics and data. All other fields are zero.
	Receipt *types.Receipt
	// Commitment is the service's commitment to the rollup block.
	Commitment Commitment
	// Target is the final JAM block that the signatures of the first link make final. It is
	// zero if they sign the output log instead of a block.
	Target Target
	// Steps explains the proof to people, with one sentence for each verified link.
	Steps []string
}

// Verify checks all links of a document about a transaction. If a link fails, the
// error wraps the error of that link, and the result contains only the steps before
// it. The error wraps ErrTrust if the trust is not valid, ErrMalformed if the
// document is not valid, and ErrTransaction if the document is about a block only.
func (d *Document) Verify(trust *Trust) (Result, error) {
	r, err := d.VerifyBlock(trust)
	if err == nil && r.Transaction == nil {
		return Result{Steps: r.Steps}, fmt.Errorf("%w: the document is about block %d only", ErrTransaction, d.Claim.Number)
	}
	return r, err
}

// VerifyBlock is like [Document.Verify] but also accepts a document about a block
// only, for which the result has no transaction. The caller can then prove accounts
// of the rollup under the state root in Result.Commitment.PostRoot.
func (d *Document) VerifyBlock(trust *Trust) (Result, error) {
	var r Result
	if err := d.verify(trust, &r); err != nil {
		return Result{Steps: r.Steps}, err
	}
	return r, nil
}

func (d *Document) verify(trust *Trust, r *Result) (err error) {
	if err := trust.Validate(); err != nil {
		return err
	}
	if err := d.route(); err != nil {
		return err
	}
	if d.Version != Version {
		return fmt.Errorf("%w: version %d, want %d", ErrMalformed, d.Version, Version)
	}
	if err := d.verifyCommitted(trust, r); err != nil {
		return err
	}
	if r.Commitment, err = VerifyCommitment(d.Commitment, d.Claim); err != nil {
		return err
	}
	c := &r.Commitment
	r.step("commitment: it binds rollup block %d %s (state %s to %s, transactions %s) to work package %s",
		c.Number, c.Hash, c.PreRoot, c.PostRoot, c.TransactionsRoot, c.Package)
	if d.Transaction == nil {
		return nil
	}
	if r.Transaction, err = d.verifyTransaction(c); err != nil {
		return err
	}
	r.step("transaction: %s is in that block at index %d", r.Transaction.Hash(), d.Transaction.Index)
	if d.Receipt == nil {
		return nil
	}
	if r.Receipt, err = d.verifyReceipt(c); err != nil {
		return err
	}
	r.step("receipt: the transaction %s (status %d, logs %d)", outcome(r.Receipt), r.Receipt.Status, len(r.Receipt.Logs))
	return nil
}

// verifyTransaction checks that the block has the claimed transaction (the fourth link).
func (d *Document) verifyTransaction(c *Commitment) (*types.Transaction, error) {
	tx, err := VerifyTransaction(c.TransactionsRoot, d.Transaction.Index, rawNodes(d.Transaction.Nodes))
	switch {
	case err != nil:
		return nil, err
	case tx.Hash() != d.Claim.Transaction:
		return nil, fmt.Errorf("%w: the block has %s at index %d, and the claim names %s", ErrTransaction, tx.Hash(), d.Transaction.Index, d.Claim.Transaction)
	}
	return tx, nil
}

func (r *Result) step(format string, args ...any) {
	r.Steps = append(r.Steps, fmt.Sprintf(format, args...))
}

// verifyCommitted checks the first two links, in one of three ways.
func (d *Document) verifyCommitted(trust *Trust, r *Result) (err error) {
	output := Output{Service: trust.Service, Yield: blake2b.Sum256(d.Commitment)}
	if d.Beefy != nil {
		if err := d.Beefy.Verify(trust); err != nil {
			return err
		}
		r.step("finality: %d of %d validators, more than two thirds, signed the output log with super-peak %s",
			len(d.Beefy.Signatures), len(trust.BLS), d.Beefy.Peak)
		if err := d.Log.verify(d.Beefy.Peak, output); err != nil {
			return err
		}
		r.step("output: entry %d of the log has the commitment as an output of service %d", d.Log.Log.Index, trust.Service)
		return nil
	}
	if r.Target, err = d.Finality.Verify(trust); err != nil {
		return err
	}
	r.step("finality: %d of %d validators of set %d, more than two thirds, signed JAM block %s of slot %d with state root %s",
		len(d.Finality.Signatures), len(trust.Validators), trust.Set, r.Target.Header, r.Target.Slot, r.Target.StateRoot)
	if d.Outputs != nil {
		if err := d.Outputs.verify(r.Target.StateRoot, output); err != nil {
			return err
		}
		r.step("state: the outputs of that block, C(16), have the commitment as one of service %d", trust.Service)
		return nil
	}
	key := CommitmentKey(trust.KeyPrefix, d.Claim.Number)
	if err := statetrie.Verify(r.Target.StateRoot, statetrie.StorageKey(trust.Service, key), d.Commitment, d.Storage.Nodes); err != nil {
		return fmt.Errorf("commitment of service %d to block %d: %w", trust.Service, d.Claim.Number, err)
	}
	r.step("state: service %d stores the commitment to rollup block %d under %x in that state", trust.Service, d.Claim.Number, key)
	return nil
}

// prove checks the value of a chapter in the state with this root.
func (p *ChapterProof) prove(stateRoot common.Hash, chapter uint8) error {
	if err := statetrie.Verify(stateRoot, statetrie.ChapterKey(chapter), p.Value, p.Nodes); err != nil {
		return fmt.Errorf("C(%d): %w", chapter, err)
	}
	return nil
}

// verify checks that C(16) of the state contains the output.
func (p *ChapterProof) verify(stateRoot common.Hash, output Output) error {
	if err := p.prove(stateRoot, statetrie.ChapterOutputs); err != nil {
		return err
	}
	outputs, err := DecodeOutputs(p.Value)
	if err != nil {
		return err
	}
	for _, o := range outputs {
		if o == output {
			return nil
		}
	}
	return fmt.Errorf("%w: service %d did not yield %s in this block", ErrOutput, output.Service, output.Yield)
}

func (p *YieldProof) verify(peak common.Hash, output Output) error {
	root, err := p.Output.root(output)
	if err != nil {
		return err
	}
	return VerifyLog(peak, root, p.Log)
}
