// Package adapters is the module of our Runtime Servers: runtimeserver owns the
// contract once for every language, python and bash are drivers of it, cmd holds
// their binaries.
package adapters
