// Package mutation checks that the tests notice errors in the code that they
// test.
//
// A mutation is a small edit of one source file that breaks a rule, together
// with the go test command that must fail because of it. The tables are text
// files in testdata. To add a mutation, append five lines to one of them:
//
//	mutation: a report is removed from its core one slot late (R4, GP 11.17)
//	file: anchor/chainview/state.go
//	test: anchor/chainview -run TestAgainstReference
//	-		if r != nil && b.Slot >= r.Since.Add(spec.AvailabilityTimeout) {
//	+		if r != nil && b.Slot > r.Since.Add(spec.AvailabilityTimeout) {
//
// The production code contains no switch for this. The edited files are written
// to a temporary directory and given to the compiler with go test -overlay, so
// the checkout is never changed.
//
// [Runner.CompileAll] compiles the mutations of a package together, because
// compilation takes most of the time. In its temporary files each mutated
// function is a switch between the original body and the edited ones, and an
// environment variable selects one for each run of the compiled test. An edit
// outside of function bodies, or one that does not compile, is compiled alone
// by [Runner.Run].
//
// A mutation fails the test of this package in each of these cases:
//
//   - the lines to replace do not occur exactly once in the file, so the
//     mutation no longer fits the code;
//   - the test command fails without the mutation, or runs no test;
//   - the edited code does not compile;
//   - the test command passes with the mutation: no test noticed the error;
//   - the test command exceeds its time limit.
//
// go test ./internal/mutation checks the first case only, in milliseconds.
// go test ./internal/mutation -mutations runs everything, in a few minutes.
package mutation
