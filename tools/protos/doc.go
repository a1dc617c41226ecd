// Package protos owns the tests of the schemas: formatted, lint-clean, generated
// code up to date, and no break since the commit before.
package protos
