import { endianness, arch as ownArch } from 'node:os'
import { allowedCalls, deniedCalls, type SystemCall } from './system-calls.ts'

type Arch = 'x64' | 'arm64'
type CheckedCall = 'clone' | 'ioctl' | 'personality' | 'socket' | 'socketpair'
type Machine = { auditArch: number; numbers: Record<CheckedCall, number> }
const machines: Readonly<Record<Arch, Machine>> = {
  x64: { auditArch: 0xc000003e, numbers: { clone: 56, ioctl: 16, personality: 135, socket: 41, socketpair: 53 } },
  arm64: { auditArch: 0xc00000b7, numbers: { clone: 220, ioctl: 29, personality: 92, socket: 198, socketpair: 199 } },
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h). */
const newNamespaces = 0x7e020000
/** TIOCSTI and TIOCLINUX inject input into a terminal, TIOCSETD loads a line discipline (asm-generic/ioctls.h). */
const terminalControl = [0x5412, 0x541c, 0x5423]
/** AF_UNIX, AF_INET and AF_INET6 (linux/socket.h). Others, such as AF_VSOCK, bypass network namespaces, or are rarely used kernel code. */
const socketFamilies = [1, 2, 10]
const unixFamily = 1
/** AF_NETLINK with protocol NETLINK_ROUTE: how programs list network interfaces. */
const netlink = { family: 16, route: 0 }
/** PER_LINUX, and the query of the current personality. Others disable address randomization, among other things. */
const personalities = [0, 0xffffffff]

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
const eafnosupport = errno(97)
const offsets = { number: 0, arch: 4, arguments: (index: number) => 16 + 8 * index }

/** `onTrue` and `onFalse` count instructions to skip. */
type Instruction = { code: number; k: number; onTrue?: number; onFalse?: number }

/** The architectures that have a filter, as in `os.arch()`. */
export const seccompArchitectures = Object.keys(machines)

/**
 * A seccomp filter for bubblewrap's `--seccomp`: an array of `struct sock_filter`. It allows the calls that engines and common languages need.
 * Every other call fails: with EPERM those that programs expect to fail without privileges, with ENOSYS the rest, so that
 * programs use an older call instead (clone3, whose flags are in memory that a filter cannot read, so that glibc falls back to clone;
 * io_uring, which executes operations without system calls; calls of newer kernels). Undefined for an architecture without a table of numbers.
 */
export function seccompFilter(arch: string = ownArch()): Buffer | undefined {
  if ((arch !== 'x64' && arch !== 'arm64') || endianness() !== 'LE') return undefined
  const { auditArch, numbers } = machines[arch]
  const argument = (index: number): Instruction => ({ code: load, k: offsets.arguments(index) })
  const program: Instruction[] = [
    { code: load, k: offsets.arch },
    { code: jumpEqual, k: auditArch, onTrue: 1, onFalse: 0 },
    { code: ret, k: kill },
    { code: load, k: offsets.number },
    // x32: the same architecture with other numbers.
    { code: jumpGreaterOrEqual, k: 0x40000000, onTrue: 0, onFalse: 1 },
    { code: ret, k: enosys },
    ...numbersOf(allowedCalls, arch).flatMap(number => returnIf(number, allow)),
    ...numbersOf(deniedCalls, arch).flatMap(number => returnIf(number, eperm)),
    ...checkCall(numbers.clone, [
      argument(0),
      { code: jumpAnySet, k: newNamespaces, onTrue: 0, onFalse: 1 },
      { code: ret, k: eperm },
      { code: ret, k: allow },
    ]),
    ...checkCall(numbers.ioctl, [argument(1), ...terminalControl.flatMap(each => returnIf(each, eperm)), { code: ret, k: allow }]),
    ...checkCall(numbers.personality, [argument(0), ...personalities.flatMap(each => returnIf(each, allow)), { code: ret, k: eperm }]),
    ...checkCall(numbers.socket, [
      argument(0),
      ...socketFamilies.flatMap(each => returnIf(each, allow)),
      { code: jumpEqual, k: netlink.family, onTrue: 1, onFalse: 0 },
      { code: ret, k: eafnosupport },
      argument(2),
      ...returnIf(netlink.route, allow),
      { code: ret, k: eafnosupport },
    ]),
    ...checkCall(numbers.socketpair, [argument(0), ...returnIf(unixFamily, allow), { code: ret, k: eafnosupport }]),
    { code: ret, k: enosys },
  ]
  return assemble(program)
}

const numbersOf = (calls: readonly SystemCall[], arch: Arch): number[] => calls.flatMap(call => call[arch] ?? [])

const returnIf = (value: number, result: number): Instruction[] => [
  { code: jumpEqual, k: value, onTrue: 0, onFalse: 1 },
  { code: ret, k: result },
]

/** `body` runs for this call only, and always returns. */
const checkCall = (number: number, body: readonly Instruction[]): Instruction[] => [
  { code: jumpEqual, k: number, onTrue: 0, onFalse: body.length },
  ...body,
]

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
