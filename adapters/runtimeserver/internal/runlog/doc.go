// Package runlog owns what user code writes beside its answers: one file of JSON
// lines a Run, of bounded size.
//
// A line of output is one entry; a longer one keeps its head and its tail. Every
// stream of every invocation has a budget of its own: what fits its first half is
// written as it comes, of the rest the last is kept and written when the stream
// ends, behind an entry that says how much was cut. So one stream cannot eat
// another's room, and the lines before a crash are there.
//
// Within a stream the entries stand in the order in which they were written; seq
// counts the entries of the file without gaps.
package runlog
