"""Linux system call numbers on two architectures, and the calls that a child may make."""

from collections.abc import Mapping
from types import MappingProxyType

# The order of the numbers below.
MACHINES = ("x86_64", "aarch64")


def _read_numbers(rows: str) -> Mapping[str, tuple[int | None, int | None]]:
    """Parse a name and its number on each machine; `-` if there is none."""
    found = {}
    for row in rows.strip().splitlines():
        name, *numbers = row.split()
        first, second = (None if number == "-" else int(number) for number in numbers)
        found[name] = (first, second)
    return MappingProxyType(found)


# For computing: memory, clocks, threads, and the conversation that is already open.
ALLOWED = _read_numbers("""
    read 0 63
    write 1 64
    readv 19 65
    writev 20 66
    recvfrom 45 207
    sendto 44 206
    getsockname 51 204
    getpeername 52 205
    getsockopt 55 209
    lseek 8 62
    fstat 5 80
    close 3 57
    poll 7 -
    ppoll 271 73
    brk 12 214
    mmap 9 222
    mprotect 10 226
    munmap 11 215
    mremap 25 216
    madvise 28 233
    futex 202 98
    set_robust_list 273 99
    rseq 334 293
    membarrier 324 283
    sched_yield 24 124
    sched_getaffinity 204 123
    getcpu 309 168
    exit 60 93
    exit_group 231 94
    rt_sigaction 13 134
    rt_sigprocmask 14 135
    rt_sigreturn 15 139
    sigaltstack 131 132
    restart_syscall 219 128
    clock_gettime 228 113
    clock_getres 229 114
    clock_nanosleep 230 115
    nanosleep 35 101
    gettimeofday 96 169
    time 201 -
    times 100 153
    getrusage 98 165
    sysinfo 99 179
    uname 63 160
    getrandom 318 278
    getcwd 79 17
    getpid 39 172
    gettid 186 178
    getppid 110 173
    getuid 102 174
    geteuid 107 175
    getgid 104 176
    getegid 108 177
""")

# For loading libraries and fonts; none of them changes a file.
READING = _read_numbers("""
    pread64 17 67
    getdents64 217 61
    newfstatat 262 79
    statx 332 291
    stat 4 -
    lstat 6 -
    access 21 -
    faccessat 269 48
    faccessat2 439 439
    readlink 89 -
    readlinkat 267 78
    dup 32 23
    fadvise64 221 223
""")

# Allowed depending on the arguments; `seccomp` has a rule for each.
CONDITIONAL = _read_numbers("""
    clone 56 220
    clone3 435 435
    fcntl 72 25
    kill 62 129
    newfstatat 262 79
    open 2 -
    openat 257 56
    prctl 157 167
    prlimit64 302 261
    tgkill 234 131
""")

# No parser makes these calls. A process that makes one has been taken over.
HOSTILE = _read_numbers("""
    ptrace 101 117
    process_vm_readv 310 270
    process_vm_writev 311 271
    pidfd_getfd 438 438
    kcmp 312 272
    bpf 321 280
    userfaultfd 323 282
    perf_event_open 298 241
    add_key 248 217
    request_key 249 218
    keyctl 250 219
    io_uring_setup 425 425
    io_uring_enter 426 426
    io_uring_register 427 427
    mount 165 40
    umount2 166 39
    open_tree 428 428
    move_mount 429 429
    fsopen 430 430
    fsmount 432 432
    mount_setattr 442 442
    pivot_root 155 41
    chroot 161 51
    unshare 272 97
    setns 308 268
    open_by_handle_at 304 265
    init_module 175 105
    finit_module 313 273
    delete_module 176 106
    kexec_load 246 104
    reboot 169 142
""")
