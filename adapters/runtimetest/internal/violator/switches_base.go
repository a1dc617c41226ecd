package violator

func errorSwitches() []Switch {
	return []Switch{
		breaks("error-without-info", "FR-ERR-01"),
		breaks("error-with-two-infos", "FR-ERR-01"),
		breaks("error-of-another-domain", "FR-ERR-01"),
		breaks("lower-case-reason", "FR-ERR-02"),
		breaks("error-without-run", "FR-ERR-03"),
		breaks("error-without-invocation", "FR-ERR-04"),
		breaks("error-without-type", "FR-ERR-05"),
		breaks("error-without-exit-code", "FR-ERR-06"),
		breaks("error-without-trace", "FR-ERR-07"),
		breaks("error-with-long-trace", "FR-ERR-07"),
		breaks("error-without-text", "FR-ERR-08"),
		{Name: "half-unsupported", Breaks: []string{"FR-ERR-09"}, BaseOnly: true},
	}
}

func processSwitches() []Switch {
	return []Switch{
		breaks("timeout-leaves-children", "FR-PRC-01"),
		breaks("cancel-leaves-children", "FR-PRC-02"),
		breaks("unregister-leaves-children", "FR-PRC-03"),
		breaks("higher-leaves-children", "FR-PRC-04", "FR-PRC-08"),
		breaks("leak-holds-call", "FR-PRC-05"),
		breaks("leak-outlives-call", "FR-PRC-06"),
		breaks("daemon-outlives-unregister", "FR-PRC-07"),
		breaks("leak-outlives-unregister", "FR-PRC-09"),
		short("load-limit-leaves-children", "FR-PRC-10"),
		breaks("drops-env", "FR-ENV-01"),
		breaks("leaks-environment", "FR-ENV-02"),
		breaks("no-path", "FR-ENV-03"),
		breaks("no-context", "FR-ENV-04"),
		breaks("wrong-dir", "FR-ENV-05"),
	}
}

func baseSwitches() []Switch {
	return []Switch{
		breaks("unhealthy", "RT-BAS-01"),
		breaks("unknown-execution-is-fine", "RT-BAS-02"),
		ignores("takes-any-execution-id", "id", "RT-BAS-03"),
		breaks("execute-waits", "RT-BAS-04"),
		breaks("lists-running-only", "RT-BAS-05"),
		breaks("forget-keeps", "RT-BAS-06"),
		breaks("forgets-running", "RT-BAS-07"),
		breaks("runs-again", "RT-BAS-08"),
		breaks("ignores-other-request", "RT-BAS-09"),
		breaks("output-once", "RT-BAS-10"),
		breaks("cancel-rewrites", "RT-BAS-11"),
		breaks("id-only-once", "RT-BAS-12"),
		breaks("mixes-streams", "RT-EXE-01"),
		breaks("exit-is-success", "RT-EXE-02"),
		breaks("cancel-once", "RT-EXE-03"),
		breaks("kills-outright", "RT-EXE-04"),
		breaks("never-kills", "RT-EXE-05"),
		breaks("kills-leader-only", "RT-EXE-06"),
		breaks("no-execution-timeout", "RT-EXE-07"),
		ignores("takes-any-execution-timeout", "timeout_seconds", "RT-EXE-08"),
		breaks("runs-anything", "RT-EXE-09"),
		breaks("output-unlimited", "RT-EXE-10"),
		breaks("cut-without-mark", "RT-EXE-11"),
		breaks("execution-drops-env", "RT-EXE-12"),
		breaks("drops-args", "RT-EXE-14"),
		breaks("no-script", "RT-EXE-15"),
		breaks("args-run-nothing", "RT-EXE-16"),
		breaks("event-without-args", "RT-EXE-17"),
		breaks("no-outputs-file", "RT-EXE-18"),
		breaks("killed-without-code", "RT-EXE-19"),
	}
}
