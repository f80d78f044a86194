import { endianness, arch as ownArch } from 'node:os'

/** System calls that engines do not need and that could escape a sandbox, by number on x86-64 and arm64 (0: the call does not exist). */
const denied: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  // Other processes, keys of the user, and kernel tracing.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  fanotify_init: [300, 262],
  syslog: [103, 116],
  // Mounts, namespaces, and files by handle, which bypass mounts.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  unshare: [272, 97],
  setns: [308, 268],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // The machine itself.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  move_pages: [279, 239],
  iopl: [172, 0],
  ioperm: [173, 0],
  modify_ldt: [154, 0],
}

/** System calls that programs try first: ENOSYS makes them fall back to the older call, EPERM would make them fail. */
const unimplemented: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  // Its flags are in memory, which a filter cannot read: glibc falls back to clone, whose flags are checked.
  clone3: [435, 435],
  // Executes operations without system calls, so filters do not apply.
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
}

type Machine = { auditArch: number; column: 0 | 1; clone: number; ioctl: number }
const machines: Readonly<Record<string, Machine>> = {
  x64: { auditArch: 0xc000003e, column: 0, clone: 56, ioctl: 16 },
  arm64: { auditArch: 0xc00000b7, column: 1, clone: 220, ioctl: 29 },
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h). */
const newNamespaces = 0x7e020000
/** TIOCSTI and TIOCLINUX inject input into a terminal (asm-generic/ioctls.h). */
const terminalInjection = [0x5412, 0x541c]

// linux/bpf_common.h and linux/seccomp.h
const load = 0x20
const jumpEqual = 0x15
const jumpGreaterOrEqual = 0x35
const jumpAnySet = 0x45
const ret = 0x06
const allow = 0x7fff0000
const kill = 0x80000000
const errno = (number: number) => 0x00050000 | number
const eperm = errno(1)
const enosys = errno(38)
const offsets = { number: 0, arch: 4, arguments: (index: number) => 16 + 8 * index }

/** `onTrue` and `onFalse` count instructions to skip. */
type Instruction = { code: number; k: number; onTrue?: number; onFalse?: number }

/** The architectures that have a filter, as in `os.arch()`. */
export const seccompArchitectures = Object.keys(machines)

/**
 * A seccomp filter for bubblewrap's `--seccomp`: an array of `struct sock_filter`. Rejects the calls above, new namespaces, and every call
 * with the numbers of another ABI (32-bit, x32), which would bypass the filter. Undefined for an architecture without a table of numbers.
 */
export function seccompFilter(arch: string = ownArch()): Buffer | undefined {
  const machine = machines[arch]
  if (machine === undefined || endianness() !== 'LE') return undefined
  const { auditArch, column, clone, ioctl } = machine
  const returnIf = (number: number, value: number): Instruction[] => [
    { code: jumpEqual, k: number, onTrue: 0, onFalse: 1 },
    { code: ret, k: value },
  ]
  const numbers = (calls: typeof denied) => Object.values(calls).flatMap(call => (call[column] === 0 ? [] : [call[column]]))
  const program: Instruction[] = [
    { code: load, k: offsets.arch },
    { code: jumpEqual, k: auditArch, onTrue: 1, onFalse: 0 },
    { code: ret, k: kill },
    { code: load, k: offsets.number },
    // x32: the same architecture with other numbers.
    { code: jumpGreaterOrEqual, k: 0x40000000, onTrue: 0, onFalse: 1 },
    { code: ret, k: enosys },
    ...numbers(denied).flatMap(number => returnIf(number, eperm)),
    ...numbers(unimplemented).flatMap(number => returnIf(number, enosys)),
    { code: jumpEqual, k: clone, onTrue: 0, onFalse: 4 },
    { code: load, k: offsets.arguments(0) },
    { code: jumpAnySet, k: newNamespaces, onTrue: 0, onFalse: 1 },
    { code: ret, k: eperm },
    { code: ret, k: allow },
    { code: jumpEqual, k: ioctl, onTrue: 0, onFalse: 1 + 2 * terminalInjection.length },
    { code: load, k: offsets.arguments(1) },
    ...terminalInjection.flatMap(request => returnIf(request, eperm)),
    { code: ret, k: allow },
  ]
  return assemble(program)
}

function assemble(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(8 * program.length)
  for (const [index, { code, k, onTrue = 0, onFalse = 0 }] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * index)
    bytes.writeUInt8(onTrue, 8 * index + 2)
    bytes.writeUInt8(onFalse, 8 * index + 3)
    bytes.writeUInt32LE(k >>> 0, 8 * index + 4)
  }
  return bytes
}
