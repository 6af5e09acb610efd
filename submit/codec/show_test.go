package codec_test

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// This file shows values under the names of the vectors' JSON.

type object = map[string]any

func showEach[T any](xs []T, show func(*T) any) []any {
	out := []any{}
	for i := range xs {
		out = append(out, show(&xs[i]))
	}
	return out
}

func hexOf[B ~[]byte](b B) string { return hexutil.Encode(b) }

func showHash[H ~[32]byte](h *H) any { return common.Hash(*h).Hex() }

func showContext(x *jamq.RefineContext) any {
	return object{
		"anchor": x.Anchor, "state_root": x.StateRoot, "beefy_root": x.BeefyRoot, "lookup_anchor": x.LookupAnchor,
		"lookup_anchor_slot": x.LookupAnchorSlot, "prerequisites": showEach(x.Prerequisites, showHash[jamq.PackageHash]),
	}
}

func showItem(x *codec.WorkItem) any {
	return object{
		"service": x.Service, "code_hash": x.CodeHash, "refine_gas_limit": x.RefineGas, "accumulate_gas_limit": x.AccumulateGas,
		"export_count": x.ExportCount, "payload": hexOf(x.Payload),
		"import_segments": showEach(x.Imports, func(i *codec.Import) any { return object{"tree_root": i.Root, "index": i.Index} }),
		"extrinsic":       showEach(x.Extrinsics, func(e *codec.Extrinsic) any { return object{"hash": e.Hash, "len": e.Length} }),
	}
}

func showPackage(x *codec.WorkPackage) any {
	return object{
		"auth_code_host": x.AuthCodeHost, "auth_code_hash": x.AuthCodeHash, "context": showContext(&x.Context),
		"authorization": hexOf(x.Authorization), "authorizer_config": hexOf(x.AuthorizerConfig),
		"items": showEach(x.Items, showItem),
	}
}

func showReport(x *codec.WorkReport) any {
	return object{
		"package_spec": object{
			"hash": x.Package.Hash, "length": x.Package.Length, "erasure_root": x.Package.ErasureRoot,
			"exports_root": x.Package.SegmentRoot, "exports_count": x.Package.SegmentCount,
		},
		"context": showContext(&x.Context), "core_index": x.Core, "authorizer_hash": x.Authorizer,
		"auth_gas_used": x.AuthGasUsed, "auth_output": hexOf(x.Trace),
		"segment_root_lookup": showEach(x.Lookups, func(l *codec.SegmentLookup) any {
			return object{"work_package_hash": l.Package, "segment_tree_root": l.SegmentRoot}
		}),
		"results": showEach(x.Digests, showDigest),
	}
}

var outcomes = map[codec.Outcome]string{
	codec.OutOfGas: "out_of_gas", codec.Panicked: "panic", codec.BadExports: "bad_exports", codec.Oversize: "output_oversize",
	codec.BadCode: "bad_code", codec.BigCode: "code_oversize",
}

func showDigest(x *codec.WorkDigest) any {
	result := object{"ok": hexOf(x.Output)}
	if x.Outcome != codec.Done {
		result = object{outcomes[x.Outcome]: nil}
	}
	return object{
		"service_id": x.Service, "code_hash": x.CodeHash, "payload_hash": x.PayloadHash, "accumulate_gas": x.AccumulateGas, "result": result,
		"refine_load": object{
			"gas_used": x.GasUsed, "imports": x.Imports, "extrinsic_count": x.ExtrinsicCount, "extrinsic_size": x.ExtrinsicSize, "exports": x.Exports,
		},
	}
}

func showHeader(x *codec.Header) any {
	out := object{
		"parent": x.Parent, "parent_state_root": x.ParentStateRoot, "extrinsic_hash": x.ExtrinsicHash, "slot": x.Slot,
		"epoch_mark": nil, "tickets_mark": nil, "author_index": x.Author, "entropy_source": hexOf(x.Entropy[:]), "seal": hexOf(x.Seal[:]),
		"offenders_mark": showEach(x.Offenders, showHash[[32]byte]),
	}
	if x.Epoch != nil {
		out["epoch_mark"] = object{
			"entropy": x.Epoch.Entropy, "tickets_entropy": x.Epoch.TicketsEntropy,
			"validators": showEach(x.Epoch.Validators, func(v *codec.ValidatorKeys) any {
				return object{"bandersnatch": hexOf(v.Bandersnatch[:]), "ed25519": hexOf(v.Ed25519[:])}
			}),
		}
	}
	if x.Tickets != nil {
		out["tickets_mark"] = showEach(x.Tickets.Tickets, func(t *codec.TicketBody) any {
			return object{"id": hexOf(t.ID[:]), "attempt": t.Attempt}
		})
	}
	return out
}

func showTicket(x *codec.TicketEnvelope) any {
	return object{"attempt": x.Attempt, "signature": hexOf(x.Signature[:])}
}

func showPreimage(x *codec.Preimage) any {
	return object{"requester": x.Service, "blob": hexOf(x.Data)}
}

func showGuarantee(x *codec.Guarantee) any {
	return object{
		"report": showReport(&x.Report), "slot": x.Slot,
		"signatures": showEach(x.Signatures, func(s *codec.ValidatorSignature) any {
			return object{"validator_index": s.Validator, "signature": hexOf(s.Signature[:])}
		}),
	}
}

func showAssurance(x *codec.Assurance) any {
	return object{"anchor": x.Anchor, "bitfield": hexOf(x.Bitfield), "validator_index": x.Validator, "signature": hexOf(x.Signature[:])}
}

func showDisputes(x *codec.Disputes) any {
	return object{
		"verdicts": showEach(x.Verdicts, func(v *codec.Verdict) any {
			return object{"target": v.Target, "age": v.Epoch, "votes": showEach(v.Votes, func(v *codec.Vote) any {
				return object{"vote": v.Valid, "index": v.Validator, "signature": hexOf(v.Signature[:])}
			})}
		}),
		"culprits": showEach(x.Culprits, func(p *codec.Culprit) any {
			return object{"target": p.Target, "key": hexOf(p.Key[:]), "signature": hexOf(p.Signature[:])}
		}),
		"faults": showEach(x.Faults, func(f *codec.Fault) any {
			return object{"target": f.Target, "vote": f.Valid, "key": hexOf(f.Key[:]), "signature": hexOf(f.Signature[:])}
		}),
	}
}

func showExtrinsic(x *codec.Extrinsics) any {
	return object{
		"tickets": showEach(x.Tickets, showTicket), "preimages": showEach(x.Preimages, showPreimage),
		"guarantees": showEach(x.Guarantees, showGuarantee), "assurances": showEach(x.Assurances, showAssurance), "disputes": showDisputes(&x.Disputes),
	}
}

func showBlock(x *codec.Block) any {
	return object{"header": showHeader(&x.Header), "extrinsic": showExtrinsic(&x.Extrinsic)}
}
