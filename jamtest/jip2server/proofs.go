package jip2server

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
)

// proofMethods lists the methods that return parts of a BEEFY proof. They are newer
// than the rest of JIP-2, so today's nodes lack them.
var proofMethods = []string{"accumulationOutputs", "accumulationOutputProof", "beefyMmrProof", "beefyCommitments"}

// proofs answers the calls of proofMethods. Without jamtest.Config.Genesis, the chain
// has no outputs, so the node has no proofs and no signatures.
func (s *Server) proofs(method string, a *args) (any, *Error) {
	head, leaf, service := jamq.HeaderHash(a.hash()), uint64(0), jamq.ServiceID(0)
	switch method {
	case "accumulationOutputProof":
		service = next[jamq.ServiceID](a)
	case "beefyMmrProof":
		leaf = next[uint64](a)
	}
	if e := a.done(); e != nil {
		return nil, e
	}
	if _, ok := s.chain.Locate(head); !ok {
		return nil, unavailable(head)
	}
	if method == "beefyCommitments" {
		return s.commitments(head)
	}
	outputs, leaves, err := s.chain.OutputLog(head)
	if err != nil {
		return nil, &Error{Code: codeNoProof, Message: err.Error(), Data: text(head)}
	}
	switch method {
	case "accumulationOutputs":
		return proof.EncodeOutputs(outputs), nil
	case "beefyMmrProof":
		return mmrProof(leaves, leaf)
	}
	return outputProof(outputs, leaves, service)
}

// commitments returns the validators' signatures over the output log after a final
// block.
func (s *Server) commitments(head jamq.HeaderHash) (any, *Error) {
	if !s.chain.Contains(s.finalized().Hash, head) {
		return nil, &Error{Code: codeNotFinal, Message: "the block is not final", Data: text(head)}
	}
	beefy, err := s.chain.Beefy(head)
	if err != nil {
		return nil, &Error{Code: codeUnsigned, Message: err.Error(), Data: text(head)}
	}
	list := []object{}
	for _, c := range beefy.Signatures {
		list = append(list, object{"validator_index": c.Validator, "signature": []byte(c.Signature)})
	}
	return object{"beefy_root": text(beefy.Peak), "commitments": list}, nil
}

// outputProof returns a proof of the first output of a service in a block. Its inner
// part leads from the output to the output root of the block. Its outer part leads from
// there through the log to the BEEFY root.
func outputProof(outputs []proof.Output, leaves []common.Hash, service jamq.ServiceID) (any, *Error) {
	index := slices.IndexFunc(outputs, func(o proof.Output) bool { return o.Service == service })
	if index < 0 {
		return nil, &Error{Code: codeNoLeaf, Message: "the service has no output in the block", Data: service}
	}
	inner, err := proof.ProveOutput(outputs, index)
	if err != nil {
		return nil, &Error{Code: codeOther, Message: err.Error()}
	}
	path := make([][]byte, 0, len(inner.Siblings))
	for _, sibling := range slices.Backward(inner.Siblings) { // JIP-2 begins at the leaf
		path = append(path, sibling)
	}
	last := len(leaves) - 1
	outer, root, err := outerProof(leaves, last)
	if err != nil {
		return nil, &Error{Code: codeOther, Message: err.Error()}
	}
	return object{
		"yield_hash": text(outputs[index].Yield), "block_output_root": text(leaves[last]), "beefy_root": root, "leaf_index": last,
		"inner": object{"leaf_index": index, "leaf_count": len(outputs), "path": path}, "outer": outer,
	}, nil
}

// mmrProof returns the proof of one leaf of the output log.
func mmrProof(leaves []common.Hash, leaf uint64) (any, *Error) {
	if leaf >= uint64(len(leaves)) {
		return nil, &Error{Code: codeNoLeaf, Message: "the log has no such leaf", Data: leaf}
	}
	outer, root, err := outerProof(leaves, int(leaf))
	if err != nil {
		return nil, &Error{Code: codeOther, Message: err.Error()}
	}
	return object{"leaf": text(leaves[leaf]), "beefy_root": root, "proof": outer}, nil
}

// outerProof returns the path of a leaf in the output log together with the log's
// peaks. It also returns the super-peak as root.
func outerProof(leaves []common.Hash, leaf int) (outer object, root string, err error) {
	p, err := proof.ProveLog(leaves, leaf)
	if err != nil {
		return nil, "", err
	}
	var log proof.Log
	for _, l := range leaves {
		log.Append(l)
	}
	peaks := []any{}
	for _, peak := range log.Peaks() {
		if peak == nil {
			peaks = append(peaks, nil)
		} else {
			peaks = append(peaks, text(*peak))
		}
	}
	path := []string{}
	for _, sibling := range p.Siblings {
		path = append(path, text(sibling))
	}
	return object{"leaf_index": leaf, "peaks": peaks, "mountain_path": path}, text(log.SuperPeak()), nil
}
