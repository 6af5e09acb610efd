// Package memstore keeps accounts of package eoa in memory: for tests, and for programs whose requests may die with them.
package memstore
