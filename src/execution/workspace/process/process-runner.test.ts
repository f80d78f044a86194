import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import {
  createProcessRunner,
  findRunProcesses,
  groupExists,
  killRunProcesses,
  SpawnError,
  type SpawnOptions,
  signalGroup,
} from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-runner-'))
after(() => rmSync(directory, { recursive: true, force: true }))

function start(script: string, options: Partial<SpawnOptions> = {}) {
  const runUid = randomUUID()
  const abort = new AbortController()
  const stdout: string[] = []
  const stderr: string[] = []
  const groups: number[] = []
  let firstLine = (_line: string): void => {}
  const ready = new Promise<string>(resolve => {
    firstLine = resolve
  })
  const run = createProcessRunner({ runUid, home: '/home-of-run', tmp: '/tmp-of-run', onStart: id => groups.push(id) })
  const done = run({
    command: 'sh',
    args: ['-c', script],
    cwd: directory,
    env: {},
    signal: abort.signal,
    onStdoutLine: line => {
      stdout.push(line)
      firstLine(line)
    },
    onStderrLine: line => stderr.push(line),
    ...options,
  })
  return { runUid, abort, stdout, stderr, groups, ready, done }
}

test('reports lines, exit code and signal', async () => {
  const { done, stdout, stderr } = start('echo one; echo two >&2; printf three; exit 7')
  assert.deepEqual(await done, { exitCode: 7, signal: null })
  assert.deepEqual([stdout, stderr], [['one', 'three'], ['two']])
  assert.deepEqual(await start('kill -TERM $$').done, { exitCode: null, signal: 'SIGTERM' })
})

test('the environment has only the given variables and those that the runner adds', async () => {
  const { done, stdout, runUid } = start('/usr/bin/env', { env: { MINE: 'a b', HOME: '/elsewhere' } })
  await done
  const names = stdout.filter(line => !/^(PWD|SHLVL|_|OLDPWD)=/.test(line)).sort()
  assert.deepEqual(names, ['HOME=/elsewhere', 'MINE=a b', `OARLOCK_RUN_UID=${runUid}`, `PATH=${process.env.PATH}`, 'TMPDIR=/tmp-of-run'])
})

for (const { name, command, cwd, reason, message } of [
  {
    name: 'a command that does not exist',
    command: 'no-such-command-of-oarlock',
    cwd: directory,
    reason: 'CommandNotFound',
    message: /"no-such-command-of-oarlock" was not found in PATH/,
  },
  {
    name: 'a directory that does not exist',
    command: 'sh',
    cwd: join(directory, 'missing'),
    reason: 'DirectoryNotFound',
    message: /working directory ".*missing" of "sh" does not exist/,
  },
  {
    name: 'a file that is not executable',
    command: join(directory, 'plain.txt'),
    cwd: directory,
    reason: 'CommandNotExecutable',
    message: /chmod \+x/,
  },
  { name: 'a command with a NUL byte', command: 'a\0b', cwd: directory, reason: 'SpawnFailed', message: /could not be started/ },
]) {
  test(`${name} is a SpawnError`, async () => {
    writeFileSync(join(directory, 'plain.txt'), 'text')
    await assert.rejects(start('', { command, cwd, args: [] }).done, error => {
      assert.ok(error instanceof SpawnError)
      assert.equal(error.reason, reason)
      assert.match(error.message, message)
      return true
    })
  })
}

test('no process of the group is left when it resolves, although its leader ended immediately (invariant 1)', async () => {
  const { done, groups, runUid } = start('(trap "" INT TERM HUP; sleep 100) & sleep 100 & echo started')
  const startedAt = performance.now()
  assert.equal((await done).exitCode, 0)
  assert.equal(groupExists(groups[0]!), false)
  assert.deepEqual(findRunProcesses(runUid), [])
  assert.ok(performance.now() - startedAt < 5_000)
})

test('an abort sends one SIGINT to the whole group', async () => {
  const { abort, done, ready, stdout } = start(
    'trap "echo int; exit 3" INT; sh -c "trap \'echo child\' INT; sleep 100" & echo ready; wait; wait',
  )
  await ready
  abort.abort()
  assert.deepEqual(await done, { exitCode: 3, signal: null })
  assert.equal(stdout.filter(line => line === 'int').length, 1)
})

test('an interrupt may go to the program only; every process of the group gets the signals after it', async () => {
  // A child in the foreground: a shell ignores SIGINT in the others, and handles its own signals when the child has ended.
  const child = `sh -c 'trap "echo child int; exit" INT; trap "echo child term; exit" TERM; echo ready; while :; do sleep 0.02; done'`
  const script = `trap "echo int" INT; trap "echo term; exit 6" TERM; ${child}; while :; do sleep 0.02; done`
  const abort = new AbortController()
  const lines: string[] = []
  const run = createProcessRunner({ runUid: randomUUID(), interrupt: group => void signalGroup(group, 'SIGINT', 'Program') })
  const onStdoutLine = (line: string): void => {
    lines.push(line)
    if (line === 'ready') abort.abort()
  }
  const escalation = { graceMs: 100, killMs: 10_000 }
  const result = await run({ command: 'sh', args: ['-c', script], cwd: directory, env: {}, signal: abort.signal, onStdoutLine, escalation })
  assert.equal(result.exitCode, 6)
  assert.deepEqual(lines.toSorted(), ['child term', 'int', 'ready', 'term'])
})

test('an interrupt for a program that has ended goes to the rest of its group', async () => {
  const child = `sh -c 'kill -KILL $PPID; trap "echo int; exit" INT; echo ready; while :; do sleep 0.02; done'`
  const leader = spawn('sh', ['-c', `${child}; true`], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const lines: string[] = []
  const ready = once(leader.stdout!.setEncoding('utf8'), 'data')
  leader.stdout!.on('data', (line: string) => void lines.push(line))
  const closed = once(leader, 'close')
  await Promise.all([once(leader, 'exit'), ready])
  signalGroup(leader.pid!, 'SIGINT', 'Program')
  await closed
  assert.equal(lines.join(''), 'ready\nint\n')
})

test('the escalation continues with SIGTERM, then SIGKILL', async () => {
  const term = start('trap "" INT; trap "echo term; exit 4" TERM; echo ready; while :; do sleep 0.02; done', {
    escalation: { graceMs: 30, killMs: 5_000 },
  })
  const kill = start('trap "" INT TERM; echo ready; while :; do sleep 0.02; done', { escalation: { graceMs: 30, killMs: 30 } })
  await Promise.all([term.ready, kill.ready])
  term.abort.abort()
  kill.abort.abort()
  assert.deepEqual(await term.done, { exitCode: 4, signal: null })
  assert.deepEqual(await kill.done, { exitCode: null, signal: 'SIGKILL' })
})

test('a stopped program can be interrupted', async () => {
  const { abort, done, ready, groups } = start('trap "exit 5" INT; echo ready; while :; do sleep 0.02; done')
  await ready
  process.kill(-groups[0]!, 'SIGSTOP')
  abort.abort()
  assert.deepEqual(await done, { exitCode: 5, signal: null })
})

test('starts nothing if the signal is already aborted', async () => {
  const { done, groups } = start('echo never', { signal: AbortSignal.abort() })
  assert.deepEqual(await done, { exitCode: null, signal: null })
  assert.deepEqual(groups, [])
})

test('a process that left the group does not delay the result, and is found by the UID of its Run', async () => {
  const { done, ready, runUid } = start(
    `setsid sh -c 'echo > left-group; exec sleep 100' & while [ ! -e left-group ]; do sleep 0.01; done; echo started`,
  )
  await ready
  await done
  const escaped = findRunProcesses(runUid)
  assert.equal(escaped.length, 1)
  assert.equal(await killRunProcesses(runUid), 1)
  assert.deepEqual(findRunProcesses(runUid), [])
})

test('after an interrupt, processes that left the group are killed, too', async () => {
  const { abort, done, ready, runUid } = start('setsid sleep 100 & echo started; wait')
  await ready
  abort.abort()
  await done
  assert.deepEqual(findRunProcesses(runUid), [])
})

test('processes of other Runs are not killed', async () => {
  const other = randomUUID()
  const child = spawn('sleep', ['100'], { env: { PATH: process.env.PATH, OARLOCK_RUN_UID: `${other}0` }, stdio: 'ignore' })
  assert.equal(await killRunProcesses(other), 0)
  assert.equal(child.exitCode, null)
  child.kill('SIGKILL')
})

for (const [name, script] of [
  ['a program', 'echo started; sleep 1; exit 3'],
  ['a process that a program leaves', 'sleep 1 & echo started; sleep 0.2; exit 3'],
] as const)
  test(`${name} of another user, which cannot be signaled, is awaited; nothing fails`, {
    skip: process.getuid?.() !== 0 && 'needs root',
  }, async () => {
    const startedAt = performance.now()
    const foreign = join(import.meta.dirname, 'foreign-program.testing.ts')
    const { stdout } = await promisify(execFile)(process.execPath, [foreign, script, '65534'])
    assert.deepEqual(JSON.parse(stdout), { exitCode: 3, signal: null })
    assert.ok(performance.now() - startedAt >= 1_000)
  })

test('a program has a lower CPU priority than the API server, also where the kernel groups processes by session', async () => {
  const { done, stdout } = start('sleep 0.2; nice; if [ -e /proc/self/autogroup ]; then cat /proc/self/autogroup; else echo nice 10; fi')
  await done
  assert.equal(stdout[0], '10')
  assert.match(stdout[1]!, /nice 10$/)
})
