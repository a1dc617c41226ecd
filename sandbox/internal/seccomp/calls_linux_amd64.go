package seccomp

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_X86_64; a call by any other convention (i386, x32) never
// reaches the table.
const auditArch = 0xc000003e

// newestJudged is the highest call number that the list below was written in view of.
const newestJudged = unix.SYS_RSEQ_SLICE_YIELD

// calls maps each system call that is not simply allowed to what happens to it.
// The groups say why; docs/security.md repeats them for readers.
func calls() map[uint32]verdict {
	table := map[uint32]verdict{}
	put := func(v verdict, numbers ...uint32) {
		for _, n := range numbers {
			table[n] = v
		}
	}
	// The mount tree and the root: the container's is final.
	put(deny, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD)
	// New namespaces would give capabilities in them, and with those the kernel's
	// least tested code. clone's flags can be read; clone3's cannot, so it does not
	// exist here and libc falls back to clone.
	put(deny, unix.SYS_UNSHARE, unix.SYS_SETNS)
	put(cloneFlags, unix.SYS_CLONE)
	put(absent, unix.SYS_CLONE3)
	// Other processes' memory and descriptors.
	put(deny, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES, unix.SYS_LISTNS)
	// Key rings are not in any namespace.
	put(deny, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY)
	// Engines inside the kernel that run what a program hands them.
	put(deny, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_FANOTIFY_INIT, unix.SYS_MEMFD_SECRET)
	put(absent, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	// The machine: modules, another kernel, clocks, ports, accounting, names.
	put(deny, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME)
	// Files by handle walk past the mount tree.
	put(deny, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT)
	// Old doors that nothing needs.
	put(deny, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
		unix.SYS__SYSCTL, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_LSM_SET_SELF_ATTR)
	put(personality, unix.SYS_PERSONALITY)
	put(ioctlRequest, unix.SYS_IOCTL)
	put(socketFamily, unix.SYS_SOCKET)
	return table
}
