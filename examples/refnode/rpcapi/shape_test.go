package rpcapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// added are the fields that the node's answers have besides geth's.
var added = []string{"queueStatus", "workPackageHash", "jamHeaderHash", "jamSlot"}

// sameShape compares two answers: the same fields, kinds of values, and lengths of data.
func sameShape(at string, ours, geths any) error {
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
			if name == "extraData" {
				continue // differs between nodes
			}
			if err := sameShape(at+"."+name, value, g[name]); err != nil {
				return err
			}
		}
		for name := range o {
			if _, ok := g[name]; !ok && !slices.Contains(added, name) {
				return fmt.Errorf("%s has %s, and geth has not", at, name)
			}
		}
	case []any:
		o, ok := ours.([]any)
		if !ok || len(o) != len(g) {
			return fmt.Errorf("%s is %v, and geth has %d elements", at, ours, len(g))
		}
		for i := range g {
			if err := sameShape(fmt.Sprintf("%s[%d]", at, i), o[i], g[i]); err != nil {
				return err
			}
		}
	default:
		if o, g := kind(ours), kind(geths); o != g {
			return fmt.Errorf("%s is %s, and geth has %s (%v, %v)", at, o, g, ours, geths)
		}
	}
	return nil
}

// kind classifies a value: a quantity has no leading zeros and any length; data has
// whole bytes and a fixed length.
func kind(v any) string {
	text, ok := v.(string)
	switch {
	case !ok:
		return fmt.Sprintf("%T", v)
	case !strings.HasPrefix(text, "0x"):
		return "text"
	case len(text) == 2, len(text) <= 18 && (text == "0x0" || text[2] != '0'):
		return "quantity"
	case len(text) <= 34:
		return "name of a filter" // 16 bytes without leading zeros
	}
	return fmt.Sprintf("data of %d digits", len(text)-2)
}
