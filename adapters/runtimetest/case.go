package runtimetest

import (
	"fmt"
	"slices"
	"strings"
)

// Level says how much a case weighs.
type Level string

// The levels. One failed MUST fails the suite; a failed SHOULD is reported.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Case is one sentence of the contract that can be observed from outside.
type Case struct {
	// ID never changes its meaning: FR- cases are about functions, RT- cases about
	// the base service.
	ID    string
	Level Level
	// Clause names the section of the contract.
	Clause string
	// Claim is what a conforming server does, in one sentence.
	Claim string
	// Needs names the fixtures and abilities without which the case is skipped.
	Needs []string
	run   func(*T)
}

// Abilities of a target that a case may need beside fixtures.
const (
	needProcesses = "processes" // the suite can see the server's processes
	needRestart   = "restart"   // the suite may kill and start the server
	needBaseOnly  = "base only" // FunctionRuntime is not there
	needLoadTime  = "load time" // the load limit is within the patience
	needCallTime  = "call time" // the default timeout is
	needDrainTime = "drain time"
)

// Sections of the contract.
const (
	scope       = "Scope"
	identity    = "Registration Identity"
	semantics   = "Registration and Status Semantics"
	invocation  = "Invocation Semantics"
	unregister  = "Unregistration"
	builtin     = "Built-in Runtime Requirements"
	notesBase   = "Notes 1.1, base service"
	notesLimits = "Notes 1.2, limits"
	notesCodes  = "Notes 1.3, codes"
	notesOpen   = "Notes 1.4, what is left open"
)

// Cases returns every case in the order in which they are listed.
func Cases() []Case {
	return slices.Concat(
		registerCases(), handlerCases(), loadCases(), statusCases(),
		invokeCases(), timeoutCases(), unregisterCases(),
		limitCases(), payloadCases(), outputCases(), errorCases(),
		processCases(), environmentCases(),
		baseCases(), executeCases(), restartCases(),
	)
}

// exclusive says that nothing else may run beside the case.
func (c Case) exclusive() bool { return slices.Contains(c.Needs, needRestart) }

// wanted says whether a selection names the case: an ID, or the start of one.
func (c Case) wanted(only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(prefix string) bool { return strings.HasPrefix(c.ID, prefix) })
}

// unmet returns why the case cannot run against the target, or "".
func (c Case) unmet(t *Target, functions bool) string {
	if strings.HasPrefix(c.ID, "FR-") && functions == slices.Contains(c.Needs, needBaseOnly) {
		if functions {
			return "the target has FunctionRuntime"
		}
		return "the target has no FunctionRuntime"
	}
	for _, need := range c.Needs {
		if why := t.lacks(need); why != "" {
			return why
		}
	}
	return ""
}

func (t *Target) lacks(need string) string {
	switch need {
	case needBaseOnly:
		return ""
	case needProcesses:
		if t.Processes == nil {
			return "the target's processes cannot be seen from here"
		}
	case needRestart:
		if t.Restart == nil {
			return "no command to restart the target was given"
		}
	case needLoadTime:
		return t.impatient("a load", t.Times.Load)
	case needCallTime:
		return t.impatient("a call without a timeout", t.Times.Invoke)
	case needDrainTime:
		return t.impatient("a drain without a timeout", t.Times.Drain)
	default:
		if !t.Fixtures.has(need) {
			return fmt.Sprintf("the fixture set has no %q", need)
		}
	}
	return ""
}

func must(id, clause, claim string, run func(*T), needs ...string) Case {
	return Case{ID: id, Level: Must, Clause: clause, Claim: claim, Needs: needs, run: run}
}

func should(id, clause, claim string, run func(*T), needs ...string) Case {
	return Case{ID: id, Level: Should, Clause: clause, Claim: claim, Needs: needs, run: run}
}
