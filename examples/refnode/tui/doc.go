// Package tui shows the state of a node (package live) in a terminal.
//
// [Run] uses the whole terminal until the user quits. If the output is not a
// terminal, it prints a line every few seconds. [Render] and [Line] are pure
// functions of the state and the size of the terminal.
package tui
