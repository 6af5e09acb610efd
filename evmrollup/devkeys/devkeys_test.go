package devkeys

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// The addresses are those that every user of the mnemonic knows.
func TestDeriveKnownAddresses(t *testing.T) {
	accounts, err := Derive(Mnemonic, 10)
	require.NoError(t, err)
	require.Equal(t, common.HexToAddress("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"), accounts[0].Address)
	require.Equal(t, common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), accounts[1].Address)
	require.Equal(t, common.HexToAddress("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720"), accounts[9].Address)
}
