package runtimetest

// Behaviour is something that a fixture does. Files are named relative to the
// working directory, which is the current directory of user code. PAYLOAD is
// what the handler is called with: a JSON string or a JSON number and nothing
// more, so that a language without a JSON reader can strip the quotes.
type Behaviour struct{ Name, Does string }

// Behaviours returns what handlers a fixture set may have.
func Behaviours() []Behaviour {
	return []Behaviour{
		{"echo", "answers with its payload, whatever JSON it is"},
		{"hold", "PAYLOAD is a string TAG: makes the file started-TAG, waits until there is a file release-TAG (at most two minutes), makes ended-TAG, answers TAG as a JSON string"},
		{"stubborn", "as hold, and ignores SIGTERM, SIGINT and SIGHUP"},
		{"children", "PAYLOAD is a number N: starts the program `sleep N` twice, once in a session of its own, makes the file started-N and waits for a minute or two"},
		{"leak", "PAYLOAD is a number N: starts the program `sleep N` in a session of its own, with all its descriptors inherited, and answers \"leaked\" at once"},
		{"late", "PAYLOAD is a number N: starts a process in the background that writes LATEN to standard output and standard error after a tenth of a second, and answers \"early\" at once"},
		{"tally", "appends a line to the file calls and answers with its payload"},
		{"guard", "makes the folder guard, works for some milliseconds, removes it and answers \"alone\"; where the folder is there already it answers \"overlap\""},
		{"counter", "answers how often it was called since it was loaded, as a number, from state that the loaded code keeps; leave it out where a call cannot change the loaded state"},
		{"fail", "fails as a handler of the language fails: raises, or returns status 3"},
		{"exit", "ends its own process with status 3 in the middle of the call"},
		{"size", "PAYLOAD is a number N of at least 2: answers with exactly N bytes, a JSON string of N-2 letters"},
		{"unencodable", "answers with a value that JSON cannot carry; leave it out where answers are raw bytes"},
		{"json", "answers with the bytes `{\"a\": 1}` and a newline; only where answers are raw bytes"},
		{"text", "answers with the bytes `hé` in UTF-8 and a newline; only where answers are raw bytes"},
		{"binary", "answers with the bytes 0xff 0x00 0x0a; only where answers are raw bytes"},
		{"noise", "PAYLOAD is a number N: writes N bytes without a newline to standard error, and to standard output too where that is not the answer, and answers \"quiet\""},
		{"outputs", "PAYLOAD is a string \"COUNT KEY VALUE\": sets COUNT outputs, the names different and KEY bytes long, the values VALUE bytes long, and answers \"set\""},
		{"env", "PAYLOAD is a string NAME: answers the value of this environment variable as a JSON string, empty if there is none"},
		{"environ", "answers the names of all environment variables in one JSON string, separated by spaces"},
		{"context", "answers the JSON string \"RUN_UID INVOCATION_ID\" of the call"},
		{"loads", "while it is loaded, appends a line to the file loads; called, it is echo"},
		{"load_slow", "while it is loaded, appends a line to the file loads, makes the file load-started and waits until there is a file load-release; called, it is echo"},
		{"load_hang", "while it is loaded, starts the program `sleep N` with N from the environment variable TOKEN, makes the file load-started and waits for ever"},
		{"load_raise", "fails while it is loaded, with a message of more than 8 KiB of é, and appends a line to the file loads before"},
		{"load_exit", "ends its own process with status 3 while it is loaded"},
		{"load_daemon", "while it is loaded, starts the program `sleep N` in a session of its own with N from the environment variable TOKEN; called, it is echo"},
		{"load_loud", "while it is loaded, writes a megabyte of LOUD to standard output and another to standard error; called, it is echo"},
	}
}

// InvalidHandlers returns in which ways a handler string can be wrong.
func InvalidHandlers() []Behaviour {
	return []Behaviour{
		{"form", "the string has not the form of a handler"},
		{"missing_file", "the file is not there"},
		{"missing_function", "the file is there, the function is not"},
		{"not_function", "the name is there and is no function"},
		{"escape", "the file would be outside of the working directory"},
		{"foreign", "the function is real and comes from the language's own library"},
	}
}

// ExecutionBehaviours returns what executions a fixture set may have.
func ExecutionBehaviours() []Behaviour {
	return []Behaviour{
		{"hello", "writes `out` and a newline to standard output, `err` and a newline to standard error, appends a line to the file runs, ends with status 0"},
		{"fail", "ends with status 3"},
		{"hold", "makes the file started, waits until there is a file release, ends with status 0; ends when it gets SIGTERM"},
		{"polite", "as hold, and on SIGTERM makes the file asked and ends with status 7"},
		{"stubborn", "as hold, ignores SIGTERM, and has a child `sleep N`, with N from the environment variable TOKEN, that ignores it too"},
		{"flood", "writes 3 MiB of lines of the letter x to standard output and then the line `the end`"},
		{"env", "writes the value of the environment variable GREETING and a newline"},
		{"words", "an entrypoint that writes each of its arguments and a newline; the suite sets the arguments"},
		{"script", "a script that writes `script` and a newline"},
		{"args", "only args: writes `args` and a newline"},
		{"handler", "a handler that writes its event's args, which the suite sets to one and two, to the file event, separated by a space"},
		{"outputs", "writes the value of HEARTH_OUTPUTS and a newline after having appended `answer=42` and a newline to that file"},
	}
}
