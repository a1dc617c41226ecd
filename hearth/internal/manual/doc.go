// Package manual holds the tests that keep the pages of docs/ true: that each test
// that a page names exists, that each reason that the code can give is on the page
// of errors, and that the tables of settings are those of the code.
package manual
