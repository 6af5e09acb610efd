package rpcapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// addedFields are the fields that the node's answers have besides geth's.
var addedFields = []string{"jamHeaderHash", "jamSlot", "queueStatus", "workPackageHash"}

// chainFields are the fields whose values depend on the chain, with the reason.
// All others have geth's values after the same transactions.
var chainFields = map[string]string{
	"hash":           "the hash of a block covers the other fields",
	"parentHash":     "as `hash`",
	"blockHash":      "as `hash`",
	"stateRoot":      "the root of a unified binary tree (EIP-7864); zero in a simulated block, because overrides need not fit into the tree",
	"timestamp":      "the clock of the node; outside of developer mode, blocks may be faster than one per second, so a block can have the time of its parent",
	"blockTimestamp": "as `timestamp`",
	"mixHash":        "a hash of the parent's hash, because no beacon chain draws one; the builder knows it in advance",
	"miner":          "`0x4A414D5100000000000000000000000000000001` receives the tips",
	"extraData":      "`jamq` and the time of execution in nanoseconds",
	"size":           "it includes `extraData`",
	"forkId":         "it covers the hash of the first block",
}

// same compares two answers: the same fields, kinds of values, lengths of data,
// and values of all fields that are not in chainFields.
func same(at string, ours, geths any) error {
	switch g := geths.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, and geth has an object", at, ours)
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			value, ok := o[name]
			if !ok {
				return fmt.Errorf("%s has no %s, and geth has", at, name)
			}
			if err := same(at+"."+name, value, g[name]); err != nil && chainFields[name] == "" {
				return err
			}
		}
		for name := range o {
			if _, ok := g[name]; !ok && !slices.Contains(addedFields, name) {
				return fmt.Errorf("%s has %s, and geth has not", at, name)
			}
		}
	case []any:
		o, ok := ours.([]any)
		if !ok || len(o) != len(g) {
			return fmt.Errorf("%s is %v, and geth has %d elements", at, ours, len(g))
		}
		for i := range g {
			if err := same(fmt.Sprintf("%s[%d]", at, i), o[i], g[i]); err != nil {
				return err
			}
		}
	default:
		if ours != geths && !(isFilter(ours) && isFilter(geths)) {
			return fmt.Errorf("%s is %v, and geth has %v", at, ours, geths)
		}
	}
	return nil
}

// isFilter reports whether an answer is the name of a filter, which is random.
func isFilter(v any) bool {
	text, ok := v.(string)
	return ok && strings.HasPrefix(text, "0x") && len(text) > 24 && len(text) <= 34
}
