/** Programs in a sandbox that hide from the limit on disk what they write. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { open, skip } from './isolated-run.testing.ts'

const mebibyte = 2 ** 20
const limits = { diskBytes: 16 * mebibyte }

const python3 = !existsSync('/usr/bin/python3') && 'no python3'
/** The numbers of system calls are those of this architecture. */
const x64 = process.arch !== 'x64' && 'needs x86-64'
const python = (text: string) => `cat > t.py <<'END'
import ctypes, mmap, os, sys, time
def deleted():
    f = os.open("gone", os.O_CREAT | os.O_RDWR)
    os.unlink("gone")
    return f
${text}
END
/usr/bin/python3 t.py`

for (const { name, script, problem, needs } of [
  {
    name: 'files that are deleted and still open',
    script: 'for i in 3 4 5 6 7; do eval "exec $i> gone"; rm gone; head -c 4000000 /dev/zero >&$i; done',
  },
  {
    name: 'deleted files that only a thread with descriptors of its own has open',
    // CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, without CLONE_FILES.
    script: python(`
files = [deleted() for _ in range(5)]
for f in files: os.write(f, bytes(4000000))
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 20)
top = ctypes.c_void_p((ctypes.addressof(stack) + (1 << 20)) & ~15)
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x50b00, None) > 0 or sys.exit("clone failed")
for f in files: os.close(f)
time.sleep(60)`),
    needs: python3,
  },
  {
    name: 'deleted files that are only mapped',
    script: python(`
maps = []
for _ in range(5):
    f = deleted()
    os.write(f, bytes(4000000))
    maps.append(mmap.mmap(f, 4000000))
    os.close(f)
# mmap keeps a descriptor of its own.
os.closerange(3, 100)
time.sleep(60)`),
    needs: python3,
  },
  {
    name: 'deleted files that are mapped by a process whose first thread has ended',
    script: python(`
import threading
def write():
    while open("/proc/self/stat").read().rsplit(")")[1].split()[0] != "Z": time.sleep(0.01)
    for _ in range(5):
        f = deleted()
        os.write(f, bytes(4000000))
        maps.append(mmap.mmap(f, 4000000))
        os.close(f)
        os.closerange(3, 100)
    time.sleep(60)
maps = []
threading.Thread(target=write).start()
# SYS_exit ends only this thread.
ctypes.CDLL(None).syscall(60, 0)`),
    needs: python3 || x64,
  },
  {
    name: 'files in a directory that may not be read',
    script: 'mkdir d; for i in 1 2 3 4 5; do head -c 4000000 /dev/zero > d/$i; done; chmod 000 d',
    // Root reads it.
    ...(process.getuid?.() === 0 ? {} : { problem: /^"work\/d" cannot be read \(EACCES\); make it readable$/ }),
  },
  {
    name: 'deleted files of a process that is not dumpable',
    script: `perl -e 'syscall(157, 4, 0, 0, 0, 0); for (1..5) { open(my $f, ">", "gone"); unlink "gone"; print $f "x" x 4e6; $f->flush; push @f, $f } sleep 60'`,
    ...(process.getuid?.() === 0 ? {} : { problem: /cannot be read, because it is not dumpable$/ }),
    needs: x64,
  },
  {
    name: 'many empty files',
    script: `perl -e 'for (1..5000) { open(F, ">", "f$_"); close F }'`,
  },
  { name: 'many empty directories', script: `perl -e 'for (1..5000) { mkdir "d$_" }'` },
  {
    name: 'files below a path that is longer than 4096 bytes',
    script: `perl -e '$n = "x" x 200; for (1..30) { mkdir $n; chdir $n } for (1..5) { open(F, ">", "f$_"); print F "x" x 4e6; close F }'`,
  },
  {
    name: 'directories nested deeper than they can be measured',
    script: `perl -e 'for (1..300) { mkdir "x"; chdir "x" }'`,
    problem: /nested more than 256 levels deep/,
  },
  {
    name: 'files with names that are not UTF-8',
    script: `perl -e 'for (1..5) { open(F, ">", "\\xff\\xfe$_"); print F "x" x 4e6; close F }'`,
  },
  {
    name: 'open files in transit through a socket',
    script: `perl -e 'use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0); open(my $f, ">", "gone"); unlink "gone";
      my $h = pack("QQQ", 0, 0, 0); my $c = pack("QiiI", 20, 1, 1, fileno $f) . "\\0" x 4; my $d = "x";
      my $iov = pack("PQ", $d, 1); my $m = pack("QQPQPQQ", 0, 0, $iov, 1, $c, 24, 0);
      syscall(46, fileno $a, $m, 0) == 1 or die "sendmsg: $!"; close $f; sleep 60'`,
    problem: /in transit through a socket/,
    needs: x64,
  },
] as { name: string; script: string; problem?: RegExp; needs?: string | false }[])
  test(`Sandbox: ${name} count against the disk limit`, { skip: skip || needs }, async t => {
    const { run, exceeded } = await open(t, 'Sandbox', { limits })
    const { lines } = await run(`${script}; echo written; sleep 60; echo survived`)
    assert.deepEqual(
      lines.filter(line => line !== 'written'),
      [],
    )
    const [found] = exceeded
    assert.equal(found?.kind, 'Disk', JSON.stringify(lines))
    if (problem) assert.match((found as { problem?: string }).problem ?? '', problem)
    else assert.ok(found!.used > limits.diskBytes, JSON.stringify(found))
  })
