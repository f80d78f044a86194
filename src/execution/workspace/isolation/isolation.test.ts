/** What a Run may see, reach and leave behind at each level, with real programs and the real kernel. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  canMarkProcesses,
  cgroupOfRun,
  findRunProcesses,
  killRunProcesses,
  killStackWriters,
  readStartTime,
  SpawnError,
  signalGroup,
} from '../process/index.ts'
import { createRunDirectory } from '../run-directory.ts'
import { base, endFirstThread, open, skip } from './isolated-run.testing.ts'

/** Starts another process of the worker's user, with a secret in its environment. */
function startOtherProcess(t: TestContext): ChildProcess {
  const child = spawn('sleep', ['60'], { env: { PATH: process.env.PATH, OARLOCK_TOKEN: 'of-the-worker' }, stdio: 'ignore' })
  t.after(() => void child.kill('SIGKILL'))
  return child
}

test('Sandbox: the directories of other Runs, the worker’s files and home directories are not visible', { skip }, async t => {
  const other = await createRunDirectory(join(base, 'runs'), randomUUID())
  writeFileSync(join(other.work, 'secret'), 'of the other run')
  const credential = join(base, 'worker-token')
  writeFileSync(credential, 'of-the-worker')
  const { run, directory } = await open(t, 'Sandbox')
  const { lines } = await run(
    `cat ${other.work}/secret ${credential}; ls ${join(base, 'runs')} ${directory.root} / /root /home 2>&1; cat /etc/shadow`,
  )
  const text = lines.join('\n')
  assert.doesNotMatch(text, /of the other run|of-the-worker|private|root:/)
  assert.match(text, /No such file/)
  await other.remove()
})

test('Sandbox: other processes cannot be listed, read or signaled, and there are no capabilities', { skip }, async t => {
  const victim = startOtherProcess(t)
  const { run } = await open(t, 'Sandbox')
  const { lines } = await run(
    `cat /proc/${victim.pid}/environ /proc/${process.pid}/environ; kill -9 ${victim.pid}; kill -9 ${process.pid}; kill -9 -1; ls -d /proc/[0-9]*; grep -E "CapEff|CapBnd|NoNewPrivs|Seccomp:" /proc/self/status`,
  )
  const text = lines.join('\n')
  assert.doesNotMatch(text, /of-the-worker/)
  assert.equal(victim.exitCode ?? victim.signalCode, null, 'the other process is still running')
  assert.ok(lines.filter(line => /^\/proc\/\d+$/.test(line)).length <= 4, `only its own processes are visible: ${text}`)
  for (const pattern of [/CapEff:\s0+$/m, /CapBnd:\s0+$/m, /NoNewPrivs:\s1$/m, /Seccomp:\s2$/m]) assert.match(text, pattern)
})

test('Sandbox: the Run leaves no process, even outside of its group, and no file outside of its directory', { skip }, async t => {
  const fileName = `oarlock-left-${randomUUID()}`
  const { run, runUid, directory } = await open(t, 'Sandbox')
  const { exitCode } = await run(
    `setsid sleep 100 & (sleep 100 &) ; echo x > /tmp/${fileName}; for d in /etc /usr /var /dev/shm /run /root /; do echo x > $d/${fileName}; done; exit 0`,
  )
  assert.equal(exitCode, 0)
  assert.deepEqual(findRunProcesses(runUid), [])
  for (const place of ['/tmp', '/etc', '/usr', '/var', '/dev/shm', '/run', '/root', '/'])
    assert.equal(existsSync(join(place, fileName)), false, place)
  assert.ok(existsSync(join(directory.tmp, fileName)), '/tmp is in the directory of the Run')
})

test('Sandbox: a program has a lower CPU priority than the API server, also where the kernel groups processes by session', {
  skip,
}, async t => {
  const { run } = await open(t, 'Sandbox')
  const { lines } = await run('sleep 0.5; nice; if [ -e /proc/self/autogroup ]; then cat /proc/self/autogroup; else echo nice 10; fi')
  assert.equal(lines[0], '10')
  assert.match(lines[1]!, /nice 10$/)
})

test('Sandbox: nothing of the kernel’s settings and devices can be written, and nothing of the machine read there', { skip }, async t => {
  const { run } = await open(t, 'Sandbox')
  const readOnly = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs'].join(' ')
  const { lines } = await run(`find ${readOnly} /sys -writable 2>/dev/null; cat /proc/kcore /proc/keys /proc/timer_list | wc -c`)
  assert.deepEqual(
    lines.filter(line => !/: (Permission denied|No such file or directory)$/.test(line)),
    ['0'],
  )
  assert.equal((await run('echo core > /proc/sys/kernel/core_pattern')).exitCode === 0, false)
})

test('Sandbox: a program is not root on the machine, and owns what this worker wrote for it', { skip }, async t => {
  const { run, directory } = await open(t, 'Sandbox')
  mkdirSync(join(directory.work, 'module'))
  writeFileSync(join(directory.work, 'module', 'source'), 'old', { mode: 0o600 })
  symlinkSync('/etc/passwd', join(directory.work, 'module', 'link'))
  writeFileSync(join(directory.scratch, 'state'), 'old', { mode: 0o600 })
  let uids: number[] = []
  // Without a program in the loop: the shell forks for it, and for a moment there are two with this command line.
  const script = 'echo new > module/source; id -un; cd /; until [ -e $HOME/seen ]; do :; done'
  const { lines, exitCode } = await run(script, () => {
    uids = readdirSync('/proc').flatMap(pid => (readCommandLine(pid).endsWith(`/sh\0-c\0${script}\0`) ? readUids(pid) : []))
    writeFileSync(join(directory.home, 'seen'), '')
  })
  assert.deepEqual([lines, exitCode], [['oarlock'], 0])
  const { uid } = statSync(join(directory.work, 'module', 'source'))
  assert.equal(uids.length, 4, 'the program was found')
  assert.deepEqual([...new Set(uids)], [uid])
  assert.notEqual(uid, 0)
  assert.equal(statSync('/etc/passwd').uid, 0, 'the target of a symlink keeps its owner')
  // Written between two programs, such as a plan.
  writeFileSync(join(directory.scratch, 'plan'), 'old', { mode: 0o600 })
  assert.equal((await run(`echo new >> ${directory.scratch}/plan && cat ${directory.scratch}/state`)).exitCode, 0)
})

/** Without the command lines of bubblewrap, which end with that of the program. */
const readCommandLine = (pid: string) => readProcess(pid, 'cmdline').replace(/.*bwrap\0.*/s, '')
const readUids = (pid: string) => (/^Uid:\t(.*)$/m.exec(readProcess(pid, 'status'))?.[1] ?? '').split('\t').map(Number)

function readProcess(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

const calls: Record<string, Record<string, number>> = {
  x64: { keyctl: 250, ptrace: 101, mount: 165, unshare: 272, bpf: 321, perf_event_open: 298, userfaultfd: 323, setns: 308, chroot: 161 },
  arm64: { keyctl: 219, ptrace: 117, mount: 40, unshare: 97, bpf: 280, perf_event_open: 241, userfaultfd: 282, setns: 268, chroot: 51 },
}
const perl = existsSync('/usr/bin/perl')
test('Sandbox: dangerous system calls fail with EPERM, clone3 and io_uring with ENOSYS', {
  skip: skip || (!perl && 'no perl'),
}, async t => {
  const { run, directory } = await open(t, 'Sandbox')
  const numbers = calls[process.arch]!
  const clone = process.arch === 'x64' ? 56 : 220
  const ioctl = process.arch === 'x64' ? 16 : 29
  const tries = { ...Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, `syscall(${number},0,0,0,0,0)`])) }
  const script = [
    ...Object.entries({ ...tries, clone_newuser: `syscall(${clone},0x10000000|17,0,0,0,0)`, tiocsti: `syscall(${ioctl},0,0x5412,0)` }).map(
      ([name, call]) => `$! = 0; $r = ${call}; print "${name} $r " . ($!+0) . "\\n";`,
    ),
    ...Object.entries({ clone3: 435, io_uring_setup: 425 }).map(
      ([name, number]) => `$! = 0; $r = syscall(${number},0,0); print "${name} $r " . ($!+0) . "\\n";`,
    ),
  ].join('\n')
  writeFileSync(join(directory.work, 'try.pl'), script)
  const { lines } = await run('perl try.pl')
  const eperm = [...Object.keys(numbers), 'clone_newuser', 'tiocsti'].map(name => `${name} -1 1`)
  assert.deepEqual(lines.toSorted(), [...eperm, 'clone3 -1 38', 'io_uring_setup -1 38'].toSorted())
})

test('Sandbox: an interrupt may go to the program only', { skip }, async t => {
  const { run, groups, directory } = await open(t, 'Sandbox')
  // A child in the foreground: a shell ignores SIGINT in the others, and handles its own signals when the child has ended.
  const child = `sh -c 'trap "echo child int" INT; echo ready; while [ ! -e stop ]; do sleep 0.02; done'`
  const { exitCode, lines } = await run(`trap "echo int; exit 3" INT; ${child}; exit 4`, line => {
    if (line !== 'ready') return
    signalGroup(groups[0]!, 'SIGINT', 'Program')
    writeFileSync(join(directory.work, 'stop'), '')
  })
  assert.deepEqual([exitCode, lines], [3, ['ready', 'int']])
})

test('Sandbox: an interrupt sends SIGINT to the program, and its exit code is reported', { skip }, async t => {
  const { run, abort, directory } = await open(t, 'Sandbox')
  const result = await run('trap "echo saved > state; exit 7" INT; echo ready; while :; do sleep 0.05; done', line => {
    if (line === 'ready') abort.abort()
  })
  assert.equal(result.exitCode, 7)
  assert.equal(readFileSync(join(directory.work, 'state'), 'utf8'), 'saved\n')
})

test('Sandbox: of the programs outside of the system directories only the engine’s is visible, alone', { skip }, async t => {
  const tool = join(base, 'tool')
  writeFileSync(tool, '#!/bin/sh\necho from the tool; ls -A $(dirname $0)\n', { mode: 0o755 })
  const { runner, directory, abort, isolation } = await open(t, 'Sandbox')
  const lines: string[] = []
  const options = { args: [], cwd: directory.work, env: {}, signal: abort.signal, onStdoutLine: (line: string) => void lines.push(line) }
  const isNotFound = (error: unknown) => error instanceof SpawnError && error.reason === 'CommandNotFound'
  // What a Stack names, by a path or by a PATH of its own, is an executable file of the worker's user: it may contain secrets.
  await assert.rejects(runner({ ...options, command: tool }), isNotFound)
  await assert.rejects(runner({ ...options, command: 'tool', env: { PATH: base } }), isNotFound)
  await assert.rejects(runner({ ...options, command: 'no-such-program' }), isNotFound)
  symlinkSync(tool, join(directory.work, 'link'))
  assert.notEqual((await runner({ ...options, command: './link' })).exitCode, 0)
  assert.deepEqual(lines, [])
  isolation.addProgram(tool)
  await runner({ ...options, command: tool })
  assert.deepEqual(lines.toSorted(), ['from the tool', 'runs', 'tool'], 'other files of its directory are not visible')
})

test('Sandbox: memory file systems are read-only or small, and no other socket families exist', {
  skip: skip || (!perl && 'no perl'),
}, async t => {
  const { run } = await open(t, 'Sandbox', { limits: { memoryBytes: 128 * 2 ** 20 } })
  const { lines } = await run(`
    for d in / /dev /run /home /proc /etc; do touch $d/x 2>/dev/null && echo "$d is writable"; done
    head -c 80000000 /dev/zero > /dev/shm/x 2>/dev/null; stat -c %s /dev/shm/x
    perl -e 'for (1, 2, 10, 16, 17, 38, 40) { print "$_ " . (socket(my $s, $_, $_ == 16 ? 3 : 1, 0) ? 0 : $!+0) . "\\n" }'`)
  const [shared, ...families] = lines
  assert.equal(Number(shared), 32 * 2 ** 20)
  // AF_PACKET, AF_ALG and AF_VSOCK fail with EAFNOSUPPORT.
  assert.deepEqual(families, ['1 0', '2 0', '10 0', '16 0', '17 97', '38 97', '40 97'])
})

for (const level of ['Process', 'Sandbox'] as const) {
  test(`${level}: shared memory counts against the memory limit`, {
    skip: (level === 'Sandbox' && skip) || (!perl && 'no perl'),
  }, async t => {
    const { run, exceeded, isolation } = await open(t, level, { limits: { memoryBytes: 64 * 2 ** 20 } })
    // MAP_SHARED | MAP_ANONYMOUS
    const mmap = process.arch === 'x64' ? 9 : 222
    const script = `$n = 2e8; $p = syscall(${mmap}, 0, $n, 3, 0x21, -1, 0); syscall(${process.arch === 'x64' ? 0 : 63}, 3, $p, $n); sleep 20`
    await run(`exec 3</dev/zero; perl -e '${script}'; echo survived`)
    if (isolation.effective.limits.memory === 'Watched') assert.equal(exceeded[0]?.kind, 'Memory')
    else assert.ok(isolation.oomKills > 0)
  })

  test(`${level}: a program inherits no descriptor of the worker’s parent`, { skip: level === 'Sandbox' && skip }, async t => {
    const secret = join(base, 'open-in-the-parent')
    writeFileSync(secret, 'of the parent')
    const script = join(import.meta.dirname, 'inherited-descriptors.testing.ts')
    const { directory } = await open(t, level)
    // Node itself closes the lowest of them.
    const descriptor = openSync(secret, 'r')
    const further = Array.from({ length: 38 }, (_, index) => ([8, 40].includes(index + 3) ? descriptor : 'ignore'))
    const child = spawn(process.execPath, [script, level, directory.root], { stdio: ['ignore', 'pipe', 'inherit', ...further] })
    closeSync(descriptor)
    const printed = (await child.stdout!.setEncoding('utf8').toArray()).join('')
    const targets = printed.split('\n').filter(Boolean)
    assert.ok(targets.length >= 3, printed)
    assert.deepEqual(
      targets.filter(target => !/^(pipe|socket):|^\/dev\/null$|^\/proc\/\d+\/fd$/.test(target)),
      [],
    )
  })
}

test('Process: the Run leaves no process, has its own HOME and TMPDIR, and gets no secret of the worker in its environment', async t => {
  const { run, runUid, directory } = await open(t, 'Process')
  process.env.OARLOCK_TEST_SECRET = 'of-the-worker'
  t.after(() => void delete process.env.OARLOCK_TEST_SECRET)
  const { lines } = await run('setsid sleep 100 & env; echo $HOME $TMPDIR')
  assert.doesNotMatch(lines.join('\n'), /of-the-worker/)
  assert.ok(lines.includes(`${directory.home} ${directory.tmp}`))
  await killRunProcesses(runUid)
  assert.deepEqual(findRunProcesses(runUid), [])
})

test('Process: a process whose first thread has ended is killed with its group, and at the end of the Run', {
  skip: endFirstThread.skip,
}, async t => {
  const mutatedStackUid = randomUUID()
  const { run, runUid } = await open(t, 'Process', { mutatedStackUid })
  const remain = endFirstThread.script('print(__import__("os").getpid(), file=open("pid", "w"), flush=True); time.sleep(1000)')
  const start = (prefix: string) =>
    run(
      `${remain.replace('/usr/bin/python3', `${prefix}/usr/bin/python3`)} >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done; cat pid; rm pid`,
    )
  const inGroup = Number((await start('')).lines[0])
  assert.equal(readStartTime(inGroup), undefined, 'it ends with its group')
  const inSession = Number((await start('setsid ')).lines[0])
  assert.notEqual(readStartTime(inSession), undefined)
  assert.deepEqual(findRunProcesses(runUid), [inSession])
  assert.equal(await killStackWriters(mutatedStackUid), 1, 'invariant 1: the next Run has no other writer')
  assert.equal(readStartTime(inSession), undefined)
})

/** Prints the pid of a process that has left the group: before that it ends with the group. */
const leaveGroup = `env -i setsid sh -c 'echo $$ > left; exec sleep 1000' >/dev/null 2>&1 & until [ -s left ]; do sleep 0.01; done; cat left`

test('Process: a process that left its group and cleared its environment is killed at the end of the Run', {
  skip: !canMarkProcesses() && 'no prlimit',
}, async t => {
  const { run, runUid, isolation } = await open(t, 'Process')
  assert.equal(isolation.effective.processTracking, cgroupOfRun(runUid) ? 'Cgroup' : 'ResourceLimit')
  const { lines } = await run(leaveGroup)
  const pid = Number(lines[0])
  assert.notEqual(readStartTime(pid), undefined, 'it outlives the program')
  await killRunProcesses(runUid)
  assert.equal(readStartTime(pid), undefined)
})

test('Process: such a process of a Run that may write is killed before the next Run of its Stack', {
  skip: !canMarkProcesses() && 'no prlimit',
}, async t => {
  const mutatedStackUid = randomUUID()
  const { run } = await open(t, 'Process', { mutatedStackUid })
  const { lines } = await run(leaveGroup)
  const pid = Number(lines[0])
  assert.equal(await killStackWriters(randomUUID()), 0)
  assert.notEqual(readStartTime(pid), undefined)
  assert.equal(await killStackWriters(mutatedStackUid), 1)
  assert.equal(readStartTime(pid), undefined)
})

const allocateMemory = 'head -c 300000000 /dev/zero | tail; echo survived'
for (const level of ['Process', 'Sandbox'] as const) {
  test(`${level}: a program that exceeds its memory limit is killed, and other Runs are not affected`, {
    skip: level === 'Sandbox' && skip,
  }, async t => {
    const { run, exceeded, isolation } = await open(t, level, { limits: { memoryBytes: 64 * 2 ** 20 } })
    const small = await open(t, level, { limits: { memoryBytes: 64 * 2 ** 20 } })
    const [result, other] = await Promise.all([run(`${allocateMemory}; sleep 5`), small.run('sleep 0.5; echo done')])
    assert.doesNotMatch(result.lines.join(), /survived/)
    assert.deepEqual(other.lines, ['done'])
    if (isolation.effective.limits.memory === 'Cgroup') assert.ok(isolation.oomKills > 0)
    else assert.deepEqual([exceeded[0]?.kind, exceeded[0]!.used > 64 * 2 ** 20], ['Memory', true])
    assert.ok(isolation.usage().peakMemoryBytes >= 60 * 2 ** 20)
  })

  test(`${level}: the kernel kills programs of a Run first when the machine runs out of memory`, {
    skip: (level === 'Sandbox' && skip) || (process.platform !== 'linux' && 'needs Linux'),
  }, async t => {
    const { run } = await open(t, level)
    const { lines } = await run('cat /proc/self/oom_score_adj; sh -c "cat /proc/self/oom_score_adj"')
    assert.deepEqual(lines, ['1000', '1000'])
  })

  test(`${level}: exceeding the limits on processes and disk is detected, and one file cannot exceed the disk limit`, {
    skip: level === 'Sandbox' && skip,
  }, async t => {
    const many = await open(t, level, { limits: { pids: 12 } })
    const started = await many.run('for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 20 & done; wait; echo survived')
    if (many.isolation.effective.limits.pids === 'Watched') {
      assert.equal(many.exceeded[0]?.kind, 'Pids')
      assert.doesNotMatch(started.lines.join(), /survived/)
    }
    const full = await open(t, level, { limits: { diskBytes: 16 * 2 ** 20 } })
    await full.run('for i in 1 2 3 4 5; do head -c 8000000 /dev/zero > file$i; done; sleep 20')
    assert.equal(full.exceeded[0]?.kind, 'Disk')
    const long = await open(t, level, { limits: { diskBytes: 16 * 2 ** 20 } })
    const { lines } = await long.run('exec 2>/dev/null; head -c 64000000 /dev/zero > file; wc -c < file')
    assert.equal(Number(lines.at(-1)), 16 * 2 ** 20)
  })
}

test('CPU seconds and peak memory are measured', async t => {
  const { run, isolation } = await open(t, 'Process')
  await run('i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.6')
  const { cpuSeconds, peakMemoryBytes, peakPids } = isolation.usage()
  assert.ok(cpuSeconds > 0.02 && cpuSeconds < 20, `${cpuSeconds}`)
  assert.ok(peakMemoryBytes > 10_000 && peakPids >= 1, `${peakMemoryBytes} ${peakPids}`)
})

test('a Run’s programs start in its cgroup, which is removed with the Run', {
  skip: !cgroupOfRun('x') && 'no writable cgroup v2',
}, async t => {
  const { run, runUid, isolation } = await open(t, 'Process')
  const cgroup = cgroupOfRun(runUid)!
  // Once it has left its process group: the group is killed when the program ends.
  const { lines } = await run(`setsid sh -c 'touch left; exec sleep 100' & until [ -e left ]; do sleep 0.01; done; cat /proc/self/cgroup`)
  assert.match(lines.join('\n'), new RegExp(`0::.*/oarlock-runs/${runUid}$`, 'm'))
  assert.equal(cgroup.processes().length, 1, 'a process that left its group is still in the cgroup')
  await isolation.close()
  assert.equal(existsSync(cgroup.path), false)
  assert.deepEqual(findRunProcesses(runUid), [])
})
