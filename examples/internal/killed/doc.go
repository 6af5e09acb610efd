// Package killed tests that a program on package builder, with a log on Pebble and a JAM
// node, loses nothing and executes nothing twice when its process is killed.
package killed
