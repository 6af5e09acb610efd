// Package lives ends an executor of package eoa in tests: a [Life] dies before
// or after any call of its store or chain, and a [Far] chain outlives the
// process that uses it, so that a test can kill the process.
package lives
