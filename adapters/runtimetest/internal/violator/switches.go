package violator

// Switch is one way to break the contract.
type Switch struct {
	Name string
	// Breaks are the IDs of the cases that have to turn red.
	Breaks []string
	// Ignore is a rule of the request that is not enforced, as "field rule" or the
	// start of it, with " key" behind a rule for a map's keys.
	Ignore string
	// Short says that the fake's times have to be within the suite's patience.
	Short bool
	// BaseOnly says that the fake has no function mode.
	BaseOnly bool
}

func breaks(name string, ids ...string) Switch { return Switch{Name: name, Breaks: ids} }

func ignores(name, rule string, ids ...string) Switch {
	return Switch{Name: name, Ignore: rule, Breaks: ids}
}

func short(name string, ids ...string) Switch { return Switch{Name: name, Breaks: ids, Short: true} }

// Switches returns every way to break the contract that the fake knows.
func Switches() []Switch {
	var all []Switch
	for _, part := range [][]Switch{registerSwitches(), statusSwitches(), invokeSwitches(), unregisterSwitches(), limitSwitches(), outputSwitches(), errorSwitches(), processSwitches(), baseSwitches()} {
		all = append(all, part...)
	}
	return all
}

func registerSwitches() []Switch {
	return []Switch{
		breaks("answers-registering", "FR-REG-01"),
		breaks("long-registration-id", "FR-REG-02"),
		breaks("bare-registration-id", "FR-REG-03"),
		breaks("reloads-on-repeat", "FR-REG-04"),
		breaks("new-id-on-repeat", "FR-REG-04"),
		breaks("races-on-register", "FR-REG-05"),
		breaks("ignores-digest", "FR-REG-06"),
		breaks("mismatch-replaces", "FR-REG-07"),
		breaks("ids-from-uid", "FR-REG-08", "FR-REG-13"),
		breaks("higher-lets-call-run", "FR-REG-09"),
		breaks("fences-after-load", "FR-REG-10"),
		breaks("takes-lower-attempt", "FR-REG-11"),
		breaks("forgets-attempts", "FR-REG-12"),
		ignores("takes-any-attempt", "registration_attempt", "FR-REG-14"),
		ignores("takes-any-digest", "registration_digest", "FR-REG-15"),
		ignores("takes-any-uid", "run_uid", "FR-REG-16"),
		{Name: "takes-any-dir", Ignore: "working_dir", Breaks: []string{"FR-REG-17"}},
		ignores("takes-any-idle-timeout", "idle_timeout_seconds", "FR-REG-18"),
		breaks("compares-dirs", "FR-REG-19"),
		breaks("one-call-per-server", "FR-REG-20"),
		breaks("takes-handler-form", "FR-HND-01"),
		breaks("takes-handler-missing-file", "FR-HND-02"),
		breaks("takes-handler-missing-function", "FR-HND-03"),
		breaks("takes-handler-not-function", "FR-HND-04"),
		breaks("takes-handler-escape", "FR-HND-05"),
		breaks("takes-handler-symlink", "FR-HND-06"),
		breaks("takes-handler-foreign", "FR-HND-07"),
		breaks("refused-handler-stays", "FR-HND-08"),
		breaks("load-dies-with-caller", "FR-LOD-01"),
		breaks("answers-before-load", "FR-LOD-02"),
		breaks("loading-is-absent", "FR-LOD-03"),
		breaks("failed-load-is-internal", "FR-LOD-04", "FR-LOD-05"),
		breaks("no-fatal-error", "FR-LOD-04", "FR-LOD-05"),
		short("no-load-limit", "FR-LOD-06"),
		breaks("hung-load-wedges", "FR-LOD-07"),
		breaks("load-prints-into-answer", "FR-LOD-08"),
		breaks("daemon-holds-load", "FR-LOD-09"),
		breaks("reloads-failed", "FR-LOD-10"),
		breaks("failed-for-ever", "FR-LOD-11"),
		breaks("long-fatal-error", "FR-LOD-12"),
	}
}

func statusSwitches() []Switch {
	return []Switch{
		breaks("status-without-registration", "FR-STA-01"),
		breaks("absent-is-stale", "FR-STA-02", "FR-INV-16"),
		breaks("status-knows-no-stale", "FR-STA-03"),
		breaks("draining-status-refused", "FR-STA-04"),
		breaks("takes-empty-id", "FR-STA-05", "FR-INV-17", "FR-UNR-14"),
		ignores("takes-no-registration", "registration required", "FR-STA-06"),
		breaks("activity-unset-at-ready", "FR-STA-07"),
		breaks("activity-in-millis", "FR-STA-07"),
		breaks("activity-not-at-start", "FR-STA-08"),
		breaks("activity-not-at-end", "FR-STA-09"),
		breaks("status-is-activity", "FR-STA-10"),
		breaks("in-flight-always-zero", "FR-STA-11"),
		breaks("in-flight-never-falls", "FR-STA-12"),
		breaks("failure-is-fatal", "FR-STA-13"),
		breaks("ids-of-any-run", "FR-STA-14"),
	}
}

func invokeSwitches() []Switch {
	return []Switch{
		breaks("invoke-without-registration", "FR-INV-01"),
		breaks("own-invocation-id", "FR-INV-02"),
		breaks("same-generated-id", "FR-INV-03"),
		breaks("plain-generated-id", "FR-INV-04"),
		breaks("refuses-long-invocation-id", "FR-INV-05"),
		ignores("takes-longer-invocation-id", "invocation_id string.max_bytes", "FR-INV-06"),
		ignores("takes-odd-invocation-id", "invocation_id string.pattern", "FR-INV-07"),
		breaks("deduplicates", "FR-INV-08"),
		breaks("queues", "FR-INV-09"),
		breaks("lets-two-in", "FR-INV-10", "FR-INV-12"),
		breaks("counts-refused", "FR-INV-11"),
		breaks("invoke-knows-no-stale", "FR-INV-13"),
		breaks("invokes-failed", "FR-INV-14"),
		breaks("invokes-draining", "FR-INV-15"),
		breaks("failure-is-unknown", "FR-INV-18"),
		breaks("exit-ends-registration", "FR-INV-19"),
		breaks("state-dies", "FR-INV-20"),
		breaks("timeout-is-internal", "FR-TIM-01"),
		breaks("timeout-fails-registration", "FR-TIM-02"),
		breaks("short-timeouts-ignored", "FR-TIM-03"),
		ignores("takes-any-timeout", "timeout_millis", "FR-TIM-04", "FR-TIM-05"),
		breaks("refuses-longest-timeout", "FR-TIM-06"),
		breaks("zero-is-no-time", "FR-TIM-07"),
		short("zero-is-for-ever", "FR-TIM-08"),
		breaks("ignores-caller", "FR-TIM-09", "FR-TIM-10"),
		breaks("cancel-lets-handler-run", "FR-TIM-11"),
		breaks("term-only", "FR-TIM-12", "FR-UNR-09"),
	}
}

func unregisterSwitches() []Switch {
	return []Switch{
		breaks("unregister-keeps", "FR-UNR-01"),
		breaks("absent-unregister-refused", "FR-UNR-02", "FR-UNR-04"),
		breaks("unregister-knows-no-stale", "FR-UNR-03"),
		breaks("refused-during-drain", "FR-UNR-05"),
		breaks("drain-cancels", "FR-UNR-06"),
		breaks("drains-for-ever", "FR-UNR-07"),
		breaks("cancel-waits", "FR-UNR-08"),
		ignores("takes-any-drain", "drain_timeout_millis", "FR-UNR-10", "FR-UNR-11"),
		breaks("zero-drain-is-no-time", "FR-UNR-12"),
		short("zero-drain-is-for-ever", "FR-UNR-13"),
		breaks("failed-cannot-go", "FR-UNR-15"),
		breaks("unregister-without-registration", "FR-UNR-16"),
		breaks("crash-holds-calls", "FR-KIL-01"),
		breaks("crash-counts-attempts", "FR-KIL-02"),
		breaks("crash-keeps-registrations", "FR-KIL-03"),
		breaks("crash-leaves-children", "FR-KIL-04"),
	}
}

func limitSwitches() []Switch {
	return []Switch{
		ignores("takes-many-variables", "env map.max_pairs", "FR-LIM-01"),
		ignores("takes-long-names", "env string.max_bytes key", "FR-LIM-02"),
		ignores("takes-long-values", "env string.max_bytes", "FR-LIM-03"),
		breaks("takes-large-env", "FR-LIM-04"),
		ignores("takes-odd-names", "env string.pattern key", "FR-LIM-05"),
		ignores("takes-reserved-names", "env env.reserved key", "FR-LIM-06", "RT-EXE-13"),
		ignores("takes-nul", "env env.nul", "FR-LIM-07"),
		ignores("takes-long-id", "registration.registration_id", "FR-LIM-08"),
		breaks("refuses-full-input", "FR-LIM-09"),
		ignores("takes-longer-input", "input", "FR-LIM-10"),
		{Name: "reads-any-message", Ignore: "input", Breaks: []string{"FR-LIM-11"}},
		breaks("cuts-input", "FR-LIM-12"),
		breaks("breaks-on-empty", "FR-PAY-01"),
		breaks("breaks-on-utf8", "FR-PAY-02"),
		breaks("breaks-on-nul", "FR-PAY-03"),
		breaks("breaks-on-depth", "FR-PAY-04"),
		breaks("breaks-on-twice", "FR-PAY-05"),
		breaks("breaks-on-surrogate", "FR-PAY-06"),
		breaks("breaks-on-numbers", "FR-PAY-07"),
		breaks("takes-no-json", "FR-PAY-08"),
		breaks("evaluates-payload", "FR-PAY-09"),
		breaks("refuses-charset", "FR-PAY-10"),
		breaks("breaks-on-type", "FR-PAY-11"),
		breaks("trims-payload", "FR-PAY-12"),
	}
}

func outputSwitches() []Switch {
	return []Switch{
		breaks("refuses-full-output", "FR-OUT-01"),
		breaks("takes-any-output", "FR-OUT-02", "FR-OUT-03"),
		breaks("everything-is-octets", "FR-OUT-04", "FR-OUT-05", "FR-OUT-07"),
		breaks("everything-is-text", "FR-OUT-06"),
		breaks("strips-line-end", "FR-OUT-05", "FR-OUT-07"),
		breaks("encodes-nan", "FR-OUT-08"),
		breaks("prints-into-answer", "FR-OUT-09"),
		breaks("late-output-leaks", "FR-OUT-10"),
		breaks("outputs-count-short", "FR-OUT-11"),
		breaks("outputs-count-unbounded", "FR-OUT-12"),
		breaks("outputs-key-short", "FR-OUT-13"),
		breaks("outputs-key-unbounded", "FR-OUT-14"),
		breaks("outputs-value-short", "FR-OUT-15"),
		breaks("outputs-value-unbounded", "FR-OUT-16"),
		breaks("outputs-total-short", "FR-OUT-17"),
		breaks("outputs-total-unbounded", "FR-OUT-18"),
		breaks("outputs-empty-key", "FR-OUT-19"),
		breaks("outputs-stay", "FR-OUT-20"),
	}
}
