package riverjobs_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa/jobs/riverjobs"
)

// Processes that start at the same time migrate the same new schema.
func TestMigrateAtTheSameTime(t *testing.T) {
	pool, schema := database(t, new(queries))
	for round := range 5 {
		var errs [8]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = riverjobs.Migrate(t.Context(), pool, fmt.Sprint(schema, "_", round)) })
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
}
