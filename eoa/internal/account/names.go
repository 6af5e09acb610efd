package account

import (
	"encoding/json"
	"fmt"
	"slices"
)

// nameOf returns the name of a value of an enumeration, or its type and number
// if it has none.
func nameOf(enumeration string, names []string, value uint8) string {
	if int(value) < len(names) && names[value] != "" {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", enumeration, value)
}

// unmarshalName is the inverse of nameOf. It also accepts the number. As usual
// in JSON, null changes nothing.
func unmarshalName(raw []byte, enumeration string, names []string, value *uint8) error {
	if string(raw) == "null" {
		return nil
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return json.Unmarshal(raw, value)
	}
	if _, err := fmt.Sscanf(name, enumeration+"(%d)", value); err == nil {
		return nil
	}
	at := slices.Index(names, name)
	if at < 0 || name == "" {
		return fmt.Errorf("eoa: %s %q is unknown", enumeration, name)
	}
	*value = uint8(at)
	return nil
}
