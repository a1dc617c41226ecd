// Package violator owns a fake Runtime Server for the tests of the conformance
// suite. Nothing in it is real: functions are Go code behind names, processes
// are entries of a table, a crash swaps the state. Without a switch it keeps the
// contract; each switch breaks one clause and names the cases that must see it.
package violator
