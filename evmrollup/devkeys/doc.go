// Package devkeys derives the well-known development accounts that users of
// Anvil and Hardhat expect.
//
// The keys are public, because the mnemonic is. Use them for tests and
// demonstrations only.
package devkeys
