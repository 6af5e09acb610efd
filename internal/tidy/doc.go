// Package tidy checks the form of this repository: the language of its
// comments and documents, the size of its functions and files, and the rules
// of its structure. The test of this package runs all checks, so they are part
// of go test ./...
//
// A check reads a [Tree] and returns a [Finding] for each place that breaks
// its rule. The checks are:
//
//   - width: comments and documents are at most 100 columns wide
//   - lists: a list of a comment is a list, not running text
//   - size: functions have at most 60 lines, files 500, a doc.go 80
//   - documented: exported names have a comment that begins with the name
//   - cited: the rules and tests that a text cites exist
//   - links: the files and headings that a document links to exist
//   - english: comments, documents, error texts and help texts are plain
//   - pure: state machines have no clock, lock, goroutine or random number,
//     and the order of a map never reaches an output
//   - order: in a package whose files have an order, which is in order_test.go, a
//     file uses functions of files below it only
//   - hidden: in some of these packages, no assignment is in the header of an if or
//     a switch, except those of errors
//
// The file debts.txt holds the number of findings that a package may still
// have. A package that is not listed there must have none. The numbers may
// only fall: the test fails if one is higher than recorded, and also if one
// is lower, until debts.txt is updated with
//
//	go test ./internal/tidy -update
//
// which lowers numbers and removes lines, and never adds any. To print what is
// left in a directory or a document, run
//
//	go test ./internal/tidy -run TestTidy -v -show txpool
//
// The table of allowed imports is in imports_test.go.
package tidy
