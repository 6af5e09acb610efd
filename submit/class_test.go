package submit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/submit"
)

func TestClass(t *testing.T) {
	cause := errors.New("core 9 of 2")
	err := fmt.Errorf("submit: %w", submit.WithClass(submit.Fatal, cause))
	require.Equal(t, submit.Fatal, submit.ClassOf(err))
	require.ErrorIs(t, err, cause)
	require.Equal(t, submit.Retryable, submit.ClassOf(cause))
	require.Equal(t, submit.Rebuild, submit.ClassOf(submit.WithClass(submit.Rebuild, err)), "the outermost mark counts")
	require.NoError(t, submit.WithClass(submit.Fatal, nil))
	require.Equal(t, "retryable, other guarantor, rebuild, fatal, submit.Class(9)",
		fmt.Sprintf("%v, %v, %v, %v, %v", submit.Retryable, submit.OtherGuarantor, submit.Rebuild, submit.Fatal, submit.Class(9)))
}
