import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seccompFilter } from './seccomp.ts'

const allowed = 0x7fff0000
const eperm = 0x00050001
const enosys = 0x00050026
const eafnosupport = 0x00050061
const killed = 0x80000000
const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 }

/** Interprets the filter (linux/bpf_common.h) for one system call, as the kernel does. */
function runFilter(filter: Buffer, { number, arch, args = [] }: { number: number; arch: number; args?: number[] }): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number >>> 0, 0)
  data.writeUInt32LE(arch >>> 0, 4)
  for (const [index, arg] of args.entries()) data.writeUInt32LE(arg >>> 0, 16 + 8 * index)
  let accumulator = 0
  for (let at = 0; at < filter.length / 8; at++) {
    const code = filter.readUInt16LE(8 * at)
    const k = filter.readUInt32LE(8 * at + 4)
    const jump = (condition: boolean) => {
      at += filter.readUInt8(8 * at + (condition ? 2 : 3))
    }
    if (code === 0x20) accumulator = data.readUInt32LE(k)
    else if (code === 0x15) jump(accumulator === k)
    else if (code === 0x35) jump(accumulator >= k)
    else if (code === 0x45) jump((accumulator & k) !== 0)
    else if (code === 0x06) return k
    else throw new Error(`unknown instruction ${code}`)
  }
  throw new Error('the filter has no final return')
}

for (const { name, arch, call, want } of [
  { name: 'read', arch: 'x64', call: { number: 0 }, want: allowed },
  { name: 'ptrace', arch: 'x64', call: { number: 101 }, want: eperm },
  { name: 'mount', arch: 'arm64', call: { number: 40 }, want: eperm },
  { name: 'call 0, io_setup', arch: 'arm64', call: { number: 0 }, want: enosys },
  { name: 'memfd_create, whose memory no limit covers', arch: 'x64', call: { number: 319 }, want: enosys },
  { name: 'a call of a newer kernel', arch: 'arm64', call: { number: 999 }, want: enosys },
  { name: 'a socket of AF_INET6', arch: 'x64', call: { number: 41, args: [10, 1, 0] }, want: allowed },
  { name: 'a socket of AF_VSOCK', arch: 'x64', call: { number: 41, args: [40, 1, 0] }, want: eafnosupport },
  { name: 'a socket of NETLINK_ROUTE', arch: 'arm64', call: { number: 198, args: [16, 3, 0] }, want: allowed },
  { name: 'a socket of NETLINK_NETFILTER', arch: 'arm64', call: { number: 198, args: [16, 3, 12] }, want: eafnosupport },
  { name: 'a pair of AF_UNIX', arch: 'x64', call: { number: 53, args: [1, 1, 0] }, want: allowed },
  { name: 'a pair of AF_TIPC', arch: 'x64', call: { number: 53, args: [30, 1, 0] }, want: eafnosupport },
  { name: 'a query of the personality', arch: 'x64', call: { number: 135, args: [0xffffffff] }, want: allowed },
  { name: 'personality ADDR_NO_RANDOMIZE', arch: 'arm64', call: { number: 92, args: [0x40000] }, want: eperm },
  { name: 'clone3, so that glibc falls back to clone', arch: 'x64', call: { number: 435 }, want: enosys },
  { name: 'io_uring_setup', arch: 'arm64', call: { number: 425 }, want: enosys },
  { name: 'clone of a thread', arch: 'x64', call: { number: 56, args: [0x00010f00] }, want: allowed },
  { name: 'clone with a new user namespace', arch: 'x64', call: { number: 56, args: [0x10000011] }, want: eperm },
  { name: 'ioctl TIOCSTI', arch: 'arm64', call: { number: 29, args: [0, 0x5412] }, want: eperm },
  { name: 'another ioctl', arch: 'x64', call: { number: 16, args: [0, 0x5413] }, want: allowed },
  { name: 'an x32 call', arch: 'x64', call: { number: 0x40000000 }, want: enosys },
] as { name: string; arch: 'x64' | 'arm64'; call: { number: number; args?: number[] }; want: number }[]) {
  test(`${arch}: ${name} returns 0x${want.toString(16)}`, () =>
    assert.equal(runFilter(seccompFilter(arch)!, { arch: auditArch[arch], ...call }), want))
}

test('a call with the numbers of another architecture kills the process', () => {
  assert.equal(runFilter(seccompFilter('x64')!, { number: 0, arch: 0x40000003 }), killed)
})

test('an architecture without a table of numbers has no filter', () => assert.equal(seccompFilter('riscv64'), undefined))
