// Package devkeys derives the well-known development accounts that users of Anvil and Hardhat expect.
//
// The keys are public: whoever reads the mnemonic has them. They serve tests and demonstrations only.
package devkeys
