#include "textflag.h"

// The first process of every container. Its bytes are copied out of this binary into
// an ELF file of one page (elf.go), so that no Go runtime starts inside a container.
// It uses no stack frame, no relocation and no address but its own registers:
//
//	R12  the op to do next        R13  its index
//	R14  the program's pid        R15  the blob
//
// argv[1] is one byte: the number of the descriptor that holds the blob, whose layout
// is stated in internal/plan/blob.go.

#define BASE $0x40000000
#define BLOB_BYTES $0x400000
#define SYS_write 1
#define SYS_mmap 9
#define SYS_munmap 11
#define SYS_clone 56
#define SYS_wait4 61
#define SYS_exit_group 231
#define SYS_close_range 436

TEXT ·initCode(SB), NOSPLIT|NOFRAME, $0
	MOVQ 16(SP), AX         // argv[1]
	MOVBQZX (AX), R8        // mmap(BASE, BLOB_BYTES, RW, PRIVATE|FIXED, fd, 0)
	MOVQ BASE, DI
	MOVQ BLOB_BYTES, SI
	MOVQ $3, DX
	MOVQ $0x12, R10
	XORQ R9, R9
	MOVQ $SYS_mmap, AX
	SYSCALL
	MOVQ BASE, R15
	CMPQ AX, R15
	JNE broken
	LEAQ 32(R15), R12
	XORQ R13, R13

next:
	MOVQ 0(R12), AX
	CMPQ AX, $-1
	JEQ fork
	CMPQ AX, $-2
	JEQ done
	MOVQ 8(R12), BX         // flags: bit i set means that argument i is an address
	MOVQ 16(R12), DI
	TESTQ $1, BX
	JEQ arg1
	MOVQ (DI), DI
arg1:
	MOVQ 24(R12), SI
	TESTQ $2, BX
	JEQ arg2
	MOVQ (SI), SI
arg2:
	MOVQ 32(R12), DX
	TESTQ $4, BX
	JEQ arg3
	MOVQ (DX), DX
arg3:
	MOVQ 40(R12), R10
	TESTQ $8, BX
	JEQ arg4
	MOVQ (R10), R10
arg4:
	MOVQ 48(R12), R8
	TESTQ $16, BX
	JEQ arg5
	MOVQ (R8), R8
arg5:
	MOVQ 56(R12), R9
	TESTQ $32, BX
	JEQ call
	MOVQ (R9), R9
call:
	SYSCALL
	MOVQ AX, 64(R12)
	CMPQ AX, $-4095
	JCS advance             // below, unsigned: no error
	TESTQ $256, BX
	JEQ failed
advance:
	ADDQ $72, R12
	INCQ R13
	JMP next

fork:                       // clone(SIGCHLD)
	MOVQ $17, DI
	XORQ SI, SI
	XORQ DX, DX
	XORQ R10, R10
	XORQ R8, R8
	MOVQ $SYS_clone, AX
	SYSCALL
	CMPQ AX, $-4095
	JCC failed
	TESTQ AX, AX
	JEQ advance             // the child goes on with the plan
	MOVQ AX, R14
	MOVQ 8(R15), BX         // keep the status descriptor alone
	XORQ DI, DI
	LEAQ -1(BX), SI
	XORQ DX, DX
	MOVQ $SYS_close_range, AX
	SYSCALL
	LEAQ 1(BX), DI
	MOVQ $0xffffffff, SI
	XORQ DX, DX
	MOVQ $SYS_close_range, AX
	SYSCALL
	MOVQ BASE, DI           // forget environment and arguments
	MOVQ BLOB_BYTES, SI
	MOVQ $SYS_munmap, AX
	SYSCALL

reap:                       // wait4(-1, SP, __WALL, 0), for ever
	MOVQ $-1, DI
	MOVQ SP, SI
	MOVQ $0x40000000, DX
	XORQ R10, R10
	MOVQ $SYS_wait4, AX
	SYSCALL
	CMPQ AX, R14
	JNE reap
	MOVQ BX, DI             // write(status, SP, 4)
	MOVQ SP, SI
	MOVQ $4, DX
	MOVQ $SYS_write, AX
	SYSCALL
	XORQ DI, DI             // the kernel kills and reaps whatever is left
	MOVQ $SYS_exit_group, AX
	SYSCALL

failed:                     // write(failures, {index, errno}, 16)
	NEGQ AX
	MOVQ R13, 0(SP)
	MOVQ AX, 8(SP)
	MOVQ 0(R15), DI
	MOVQ SP, SI
	MOVQ $16, DX
	MOVQ $SYS_write, AX
	SYSCALL
broken:
	MOVQ $126, DI
	MOVQ $SYS_exit_group, AX
	SYSCALL
	INT $3

	// The second entry, for a process that wants to go on afterwards: a C function
	// without arguments, which finds the blob mapped at BASE already, and returns 0
	// where the plan says so. A step that fails ends the process, as above.
	LONG $0x52414548        // its mark, for elf.go: "HEARTHAPPLYBEGIN"
	LONG $0x50414854
	LONG $0x42594c50
	LONG $0x4e494745
	PUSHQ BX
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	MOVQ BASE, R15
	LEAQ 32(R15), R12
	XORQ R13, R13
	JMP next
done:
	POPQ R15
	POPQ R14
	POPQ R13
	POPQ R12
	POPQ BX
	XORQ AX, AX
	RET
	LONG $0x52414548        // the end, for elf.go: "HEARTHWALLS-END!"
	LONG $0x41574854
	LONG $0x2d534c4c
	LONG $0x21444e45

// func codeAddress() uintptr
TEXT ·codeAddress(SB), NOSPLIT, $0-8
	LEAQ ·initCode(SB), AX
	MOVQ AX, ret+0(FP)
	RET
