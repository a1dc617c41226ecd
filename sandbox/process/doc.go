// Package process owns the sandbox driver that builds its walls out of plain kernel
// parts: namespaces, a root of its own, control groups, an unprivileged user, dropped
// capabilities, no-new-privileges, rlimits and a seccomp filter. It needs no helper
// program: the first process of a container is a few hundred bytes of machine code
// that are executed from memory (internal/initcode) and apply a plan of system calls
// (internal/walls).
//
//	Open ─▶ sweep what an earlier life left, try what the machine allows,
//	        one empty network namespace, one thread that starts every container
//	Create ─▶ control group with its limits
//	Start ──▶ clone(new pid, mount, ipc, uts) ─▶ init applies the plan ─▶ forks
//	            │                                  │                       ├─ pid 1 reaps
//	            │                                  └─ failure: index, errno └─ execve
//	            └─ returns at the execve
//	end ────▶ pid 1 tells the status and exits; the kernel kills what is left
//	Destroy ─▶ kill, wait, remove the group, prove that it is empty
//
// A process that a template forked takes the same steps by itself (Entry), and is a
// container like any other from then on. A template (StartTemplate) is a child of the
// driver's thread too, and so is what it forks (CLONE_PARENT): neither outlives the
// driver, and no container ends with the template that it came from.
//
// What must not outlive the owning process does not: each first process asks the
// kernel to be killed when the thread that cloned it ends, and that thread lives as
// long as the driver. Control groups are removed by a guard, a shell that outlives the
// driver for that; what a guard that was killed too leaves, the next Open or Sweep does.
package process
