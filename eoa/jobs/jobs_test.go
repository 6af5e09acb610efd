package jobs

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

func TestStep(t *testing.T) {
	s := Step{Account: eoa.Account{ChainID: 4359, Address: common.Address{1}}, Wake: 7}
	payload, err := s.Encode()
	require.NoError(t, err)
	back, err := Decode(payload)
	require.NoError(t, err)
	require.Equal(t, s, back)
	later := s
	later.Wake++
	require.Equal(t, s.UniqueKey(), later.UniqueKey())
	_, err = Decode([]byte("{"))
	require.ErrorIs(t, err, ErrMalformed)
}
