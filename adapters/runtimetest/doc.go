// Package runtimetest owns the Runtime Server contract as a suite that runs
// against any Runtime Server: black box, given its address, a folder that both
// can see, and a set of fixture functions in its language.
//
//	results, err := runtimetest.Run(ctx, runtimetest.Target{
//		URL:       "unix:/run/my-runtime.sock",
//		Workspace: "/var/lib/my-runtime",
//		Fixtures:  fixtures, // runtimetest.Builtin("python") or runtimetest.Load(dir)
//	}, runtimetest.Options{})
//
// A case is one observable sentence of the contract: an ID, a level (MUST or
// SHOULD), the section that it comes from, and a claim. Cases know nothing of
// the server: what they see are answers, files that fixtures write into their
// working directory, and, on a shared machine, processes that were left behind.
//
// The suite is itself under test: internal/violator is a fake Runtime with one
// switch for each way to break a clause, and every case has to turn red for at
// least one of them.
package runtimetest
