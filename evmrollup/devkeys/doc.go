// Package devkeys derives the well-known development accounts that users of Anvil
// and Hardhat expect.
//
// Everyone knows the keys, because the mnemonic is public. Use them only for tests
// and demonstrations.
package devkeys
