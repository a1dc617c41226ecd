// Package runlogs owns the reading of Runs' logs, which the Runtime Server writes
// into the workspace as JSON lines:
//
//	WORKSPACE/.hearth/logs/RUN_UID.jsonl     being written, appended to
//	WORKSPACE/.hearth/logs/RUN_UID.jsonl.1   the file before it
//
// One entry a line: time, run_uid, invocation_id, level, stream, seq, message,
// cut_bytes. seq counts the entries of both files without gaps. When the file is
// full it is closed, renamed over the older one, and begun anew; a line without
// its newline is being written, and one that is no JSON was cut by a crash.
//
// A reader holds the file that it reads open, so that a rotation takes nothing
// from it; whoever falls behind by two misses what was between, and says so. The
// writer is never waited for and never made to wait.
package runlogs
