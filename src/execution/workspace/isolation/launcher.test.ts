/** The environment of a Run reaches its program, and nothing that runs before it. With real programs and the real dynamic loader. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { createProcessRunner, SpawnError } from '../process/index.ts'
import { createRunDirectory } from '../run-directory.ts'
import { probeIsolation, RunIsolation } from './index.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-launcher-'))
after(() => rmSync(base, { recursive: true, force: true }))
const sandbox = await probeIsolation('Sandbox')
const levels = [
  { level: 'Process', skip: false },
  { level: 'Sandbox', skip: sandbox.available ? false : sandbox.reason },
] as const

async function open(t: TestContext, level: 'Process' | 'Sandbox') {
  const runUid = randomUUID()
  const directory = await createRunDirectory(join(base, 'runs'), runUid)
  // A disk limit needs a launcher at level Process too.
  const limits = { diskBytes: 2 ** 30 }
  const isolation = new RunIsolation({
    ...(sandbox.available && sandbox),
    ...{ level, network: 'Host' as const, limits, runUid, directory, readable: [], onExceeded: () => {} },
  })
  t.after(async () => {
    await isolation.close()
    await directory.remove()
  })
  const runner = createProcessRunner({ runUid, ...directory, path: '/usr/bin:/bin', wrapCommand: isolation.wrapCommand })
  const lines: string[] = []
  const run = (command: string, args: string[], env: Record<string, string>, onLine = (line: string) => void lines.push(line)) =>
    runner({ command, args, cwd: directory.work, env, signal: new AbortController().signal, onStdoutLine: onLine, onStderrLine: onLine })
  return { runUid, directory, run, lines }
}

for (const { level, skip } of levels) {
  test(`${level}: variables of the dynamic loader have no effect on the launcher`, { skip }, async t => {
    const { run } = await open(t, level)
    // Stands for LD_PRELOAD without a compiler: each program that is loaded with it writes a file outside of the Run's directory.
    const traces = mkdtempSync(join(base, 'traces-'))
    const { exitCode } = await run('/usr/bin/true', [], { LD_DEBUG: 'files', LD_DEBUG_OUTPUT: join(traces, 'trace') })
    assert.equal(exitCode, 0)
    const loaded = readdirSync(traces).flatMap(name =>
      [...readFileSync(join(traces, name), 'utf8').matchAll(/initialize program: (.*)/g)].map(match => match[1]),
    )
    assert.deepEqual(loaded, level === 'Process' ? ['/usr/bin/true'] : [])
  })

  test(`${level}: the program gets exactly its environment, with values that a shell would interpret`, { skip }, async t => {
    const { run, runUid, directory, lines } = await open(t, level)
    const values = { QUOTED: `it's "x" $(id) \`id\` \\ $HOME`, EMPTY: '', IFS: 'abc', ENV: '/nothing', BASH_ENV: '/nothing', PS4: '$(id)' }
    await run('/usr/bin/env', [], values)
    const pwd = lines.filter(line => /^(PWD|OLDPWD|SHLVL|_)=/.test(line))
    assert.deepEqual(
      lines.filter(line => !pwd.includes(line)).toSorted(),
      Object.entries({ ...values, PATH: '/usr/bin:/bin', HOME: directory.home, TMPDIR: directory.tmp, OARLOCK_RUN_UID: runUid })
        .map(([name, value]) => `${name}=${value}`)
        .toSorted(),
    )
  })

  test(`${level}: values of the environment are in no process’s arguments`, { skip }, async t => {
    const { run, directory } = await open(t, level)
    const secret = `value-${randomUUID()}`
    const lines: string[] = []
    let leaks: string[] | undefined
    const script = 'echo "$SECRET"; until [ -e seen ]; do sleep 0.01; done'
    const { exitCode } = await run('/bin/sh', ['-c', script], { SECRET: secret }, line => {
      lines.push(line)
      leaks = readdirSync('/proc').filter(pid => /^\d/.test(pid) && argumentsOf(pid).includes(secret))
      writeFileSync(join(directory.work, 'seen'), '')
    })
    assert.deepEqual(lines, [secret])
    assert.deepEqual([exitCode, leaks], [0, []])
  })

  test(`${level}: rejects a value with a NUL byte, which would end an option of the sandbox`, { skip }, async t => {
    const { run } = await open(t, level)
    await assert.rejects(
      run('/usr/bin/true', [], { NAME: 'x\0--bind\0/\0/host' }),
      (error: unknown) => error instanceof SpawnError && error.reason === 'SpawnFailed',
    )
  })
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
