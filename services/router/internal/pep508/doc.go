// Package pep508 owns the requirements that a call may name: PEP 508 entries of
// name, extras, PEP 440 version specifiers and markers. URLs, paths, files and
// installer options are refused, since an entry goes to an installer's command
// line.
//
//	requirement = name [extras] [specifiers] [";" marker]
//	extras      = "[" [identifier ("," identifier)*] "]"
//	specifiers  = one ("," one)* | "(" [one ("," one)*] ")"
//	one         = ("~=" | "==" | "!=" | "<=" | ">=" | "<" | ">" | "===") version
//	marker      = and ("or" and)*        and = term ("and" term)*
//	term        = "(" marker ")" | operand operator operand
//	operator    = a version operator | "in" | "not" "in"
//	operand     = a variable | a quoted string
//
// The package is pure: standard library only, no I/O.
package pep508
