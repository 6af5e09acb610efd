package eoa_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs"
)

// The error of a configuration without any value has its first and its last wrong field.
func TestEachFieldIsListed(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		first, last string
	}{
		"eoa":   {(&eoa.Config{}).Validate(), "BumpPercent", "LeaseFor is 0s, want 1s to 24h0m0s"},
		"fleet": {(&eoa.FleetConfig{}).Validate(), "Workers", "LeaseFor"},
		"jobs":  {(&jobs.Config{}).Validate(), "Slice", "LeaseFor"},
	} {
		require.ErrorContains(t, c.err, c.first, name)
		require.ErrorContains(t, c.err, c.last, name)
	}
}
