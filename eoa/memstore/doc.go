// Package memstore keeps accounts of package eoa in memory. It is for tests,
// and for programs whose requests need not survive a restart.
package memstore
