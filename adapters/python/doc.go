// Package python is the Python driver of runtimeserver: it loads a handler once
// and keeps it warm.
//
// A generation is one load of the handler's module, in a template process that
// never runs a call. What answers calls is a child forked from it; a call that is
// ended by its deadline, or that ends its process, costs the child and not the
// imports:
//
//	Load ──▶ generation: template ──fork──▶ child ──answers──▶ child ─▶ …
//	              ▲          │                │
//	              │          │ fork           │ deadline, exit, broken socket
//	              │          ▼                ▼
//	import left   │       next child ◀── killed with all that descends from it
//	threads: a    │
//	fresh load ───┴────────── the template itself answers, and is killed
//
// Where there are cgroups, the template does not start an interpreter: it grows from
// a base, a process that has started one and imported what the driver itself needs,
// once for all registrations. User code never runs in the base; what grew from it
// is a child of the server, has its environment, streams, folder and group of its
// own, and outlives it. A base that ends is started again, and until then, as where
// an environment sets what only a start reads (LD_*, MALLOC_*, PYTHON* and the
// like), an interpreter is started for the function alone.
//
// The first call forks the first child: a function that nobody has called yet has one
// process. A successor is made in the background: who called is answered once the
// killed processes are gone, and the next call waits for what is left of the fork.
//
// What survives from one call to the next is the module: its variables, threads,
// open files and connections, and the files in the working folder and TMPDIR. What does
// not: processes that the call started, however they hide; working folder, umask,
// environment, signal handlers, timers, locale, sys.stdout and the descriptors 0
// to 2 are put back. After a kill the module is as it was right after its import,
// with fresh random seeds; hash seeds are shared by all that grew from one base.
//
// The environment is exactly the function's own. The interpreter itself runs
// isolated (-I) with UTF-8 as its default encoding (-X utf8): PYTHON* variables,
// PYTHONHASHSEED and PYTHONPATH among them, reach os.environ and change nothing
// else. The working folder, and vendor beneath it, come first on sys.path, and no
// .pyc is written into them. While the module is imported, numerical libraries are
// asked for one thread (OPENBLAS_NUM_THREADS=1 and the like, unless the function's
// environment says otherwise), so that the process can be forked.
package python
