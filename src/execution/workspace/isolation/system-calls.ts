/** A system call with its number on x86-64 and arm64, where it exists there. */
export type SystemCall = { name: string; x64: number | undefined; arm64: number | undefined }

/**
 * Calls that a sandboxed program may make with any argument. Not among them, besides {@link deniedCalls}: what programs can do without, and what
 * uses memory that no limit covers (memfd_create, memfd_secret, shared memory and message queues of System V).
 */
export const allowedCalls: readonly SystemCall[] = parseCalls(`
# Files and directories
  access 21 -, chdir 80 49, chmod 90 -, chown 92 -, close 3 57, close_range 436 436, copy_file_range 326 285, creat 85 -, dup 32 23,
  dup2 33 -, dup3 292 24, faccessat 269 48, faccessat2 439 439, fadvise64 221 223, fallocate 285 47, fchdir 81 50, fchmod 91 52,
  fchmodat 268 53, fchown 93 55, fchownat 260 54, fcntl 72 25, fdatasync 75 83, fgetxattr 193 10, flistxattr 196 13, flock 73 32,
  fremovexattr 199 16, fsetxattr 190 7, fstat 5 80, fstatfs 138 44, fsync 74 82, ftruncate 77 46, futimesat 261 -, getcwd 79 17,
  getdents 78 -, getdents64 217 61, getxattr 191 8, inotify_add_watch 254 27, inotify_init 253 -, inotify_init1 294 26,
  inotify_rm_watch 255 28, lchown 94 -, lgetxattr 192 9, link 86 -, linkat 265 37, listxattr 194 11, llistxattr 195 12, lremovexattr 198 15,
  lseek 8 62, lsetxattr 189 6, lstat 6 -, mkdir 83 -, mkdirat 258 34, mknod 133 -, mknodat 259 33, newfstatat 262 79, open 2 -, openat 257 56,
  openat2 437 437, pread64 17 67, preadv 295 69, preadv2 327 286, pwrite64 18 68, pwritev 296 70, pwritev2 328 287, read 0 63,
  readahead 187 213, readlink 89 -, readlinkat 267 78, readv 19 65, removexattr 197 14, rename 82 -, renameat 264 38, renameat2 316 276,
  rmdir 84 -, sendfile 40 71, setxattr 188 5, splice 275 76, stat 4 -, statfs 137 43, statx 332 291, symlink 88 -, symlinkat 266 36,
  sync 162 81, sync_file_range 277 84, syncfs 306 267, tee 276 77, truncate 76 45, umask 95 166, unlink 87 -, unlinkat 263 35, utime 132 -,
  utimensat 280 88, utimes 235 -, vmsplice 278 75, write 1 64, writev 20 66
# Memory
  brk 12 214, madvise 28 233, membarrier 324 283, mincore 27 232, mlock 149 228, mlock2 325 284, mlockall 151 230, mmap 9 222,
  mprotect 10 226, mremap 25 216, msync 26 227, munlock 150 229, munlockall 152 231, munmap 11 215, pkey_alloc 330 289, pkey_free 331 290,
  pkey_mprotect 329 288
# Processes, threads and signals
  alarm 37 -, arch_prctl 158 -, capget 125 90, capset 126 91, execve 59 221, execveat 322 281, exit 60 93, exit_group 231 94, fork 57 -,
  futex 202 98, futex_waitv 449 449, get_robust_list 274 100, getcpu 309 168, getegid 108 177, geteuid 107 175, getgid 104 176,
  getgroups 115 158, getpgid 121 155, getpgrp 111 -, getpid 39 172, getppid 110 173, getpriority 140 141, getresgid 120 150,
  getresuid 118 148, getrlimit 97 163, getrusage 98 165, getsid 124 156, gettid 186 178, getuid 102 174, ioprio_get 252 31, ioprio_set 251 30,
  kill 62 129, landlock_add_rule 445 445, landlock_create_ruleset 444 444, landlock_restrict_self 446 446, pause 34 -, pidfd_open 434 434,
  pidfd_send_signal 424 424, prctl 157 167, prlimit64 302 261, restart_syscall 219 128, rseq 334 293, rt_sigaction 13 134,
  rt_sigpending 127 136, rt_sigprocmask 14 135, rt_sigqueueinfo 129 138, rt_sigreturn 15 139, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
  rt_tgsigqueueinfo 297 240, sched_get_priority_max 146 125, sched_get_priority_min 147 126, sched_getaffinity 204 123, sched_getattr 315 275,
  sched_getparam 143 121, sched_getscheduler 145 120, sched_rr_get_interval 148 127, sched_setaffinity 203 122, sched_setattr 314 274,
  sched_setparam 142 118, sched_setscheduler 144 119, sched_yield 24 124, seccomp 317 277, set_robust_list 273 99, set_tid_address 218 96,
  setfsgid 123 152, setfsuid 122 151, setgid 106 144, setgroups 116 159, setpgid 109 154, setpriority 141 140, setregid 114 143,
  setresgid 119 149, setresuid 117 147, setreuid 113 145, setrlimit 160 164, setsid 112 157, setuid 105 146, sigaltstack 131 132,
  tgkill 234 131, tkill 200 130, vfork 58 -, wait4 61 260, waitid 247 95
# Events, pipes, queues and semaphores of the sandbox's own
  epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_pwait 281 22, epoll_pwait2 441 441, epoll_wait 232 -, eventfd 284 -,
  eventfd2 290 19, mq_getsetattr 245 185, mq_notify 244 184, mq_open 240 180, mq_timedreceive 243 183, mq_timedsend 242 182,
  mq_unlink 241 181, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73, pselect6 270 72, select 23 -, semctl 66 191, semget 64 190,
  semop 65 193, semtimedop 220 192, signalfd 282 -, signalfd4 289 74
# Sockets; the arguments of socket and socketpair are checked separately
  accept 43 202, accept4 288 242, bind 49 200, connect 42 203, getpeername 52 205, getsockname 51 204, getsockopt 55 209, listen 50 201,
  recvfrom 45 207, recvmmsg 299 243, recvmsg 47 212, sendmmsg 307 269, sendmsg 46 211, sendto 44 206, setsockopt 54 208, shutdown 48 210
# Time, and what the machine is
  clock_getres 229 114, clock_gettime 228 113, clock_nanosleep 230 115, getitimer 36 102, getrandom 318 278, gettimeofday 96 169,
  nanosleep 35 101, setitimer 38 103, sysinfo 99 179, time 201 -, timer_create 222 107, timer_delete 226 111, timer_getoverrun 225 109,
  timer_gettime 224 108, timer_settime 223 110, timerfd_create 283 85, timerfd_gettime 287 87, timerfd_settime 286 86, times 100 153,
  uname 63 160
`)

/** Calls that could escape a sandbox. They fail with EPERM, the error that programs expect of them without privileges. */
export const deniedCalls: readonly SystemCall[] = parseCalls(`
# Other processes, keys of the user, and kernel tracing
  ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, pidfd_getfd 438 438, add_key 248 217,
  request_key 249 218, keyctl 250 219, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, fanotify_init 300 262, syslog 103 116,
  lookup_dcookie 212 18
# Mounts, namespaces, and files by handle, which bypass mounts
  mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97, setns 308 268, open_tree 428 428, move_mount 429 429,
  fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442, name_to_handle_at 303 264,
  open_by_handle_at 304 265
# The machine itself
  kexec_load 246 104, kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106, reboot 169 142,
  swapon 167 224, swapoff 168 225, acct 163 89, quotactl 179 60, quotactl_fd 443 443, settimeofday 164 170, clock_settime 227 112,
  clock_adjtime 305 266, adjtimex 159 171, sethostname 170 161, setdomainname 171 162, vhangup 153 58, move_pages 279 239,
  migrate_pages 256 238, iopl 172 -, ioperm 173 -, modify_ldt 154 -
`)

/** Lines of `name x64 arm64`, separated by commas; `-`: does not exist there. Lines that begin with # are comments. */
function parseCalls(text: string): SystemCall[] {
  const rows = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const cells = rows.flatMap(row => row.split(',').map(cell => cell.trim().split(' '))).filter(([name]) => name !== '')
  return cells.map(([name, x64, arm64]) => ({ name: name!, x64: parseNumber(x64), arm64: parseNumber(arm64) }))
}

function parseNumber(text: string | undefined): number | undefined {
  return text === '-' ? undefined : Number(text)
}
