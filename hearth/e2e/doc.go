// Package e2e holds the tests of Hearth as its users meet it: the command, a real
// `hearth up`, real HTTP.
package e2e
