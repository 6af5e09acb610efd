// Package tui shows a node in a terminal: what package live shows, for people on servers.
//
// [Run] takes over a terminal until the user quits, or writes a line now and then where the output is no terminal. What it draws is a pure function of the
// state and the size of the terminal (render.go).
package tui
