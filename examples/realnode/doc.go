// Package realnode runs the library against a JAM node that others wrote: the
// node typeberry from npm, with a tiny development chain on the loopback
// interface. Only its test does something. It needs Node and, in the folder node,
// the packages that "npm install --no-save" brings.
package realnode
