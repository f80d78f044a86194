/** Runs of tests, with real programs at any level. */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import type { IsolationLevel, Network } from '../../../api/index.ts'
import { createProcessRunner } from '../process/index.ts'
import { createRunDirectory } from '../run-directory.ts'
import { type ExceededLimit, privateNetworkProblem, probeIsolation, RunIsolation, type RunLimits } from './index.ts'

export const base = mkdtempSync(join(tmpdir(), 'oarlock-isolation-'))
after(() => rmSync(base, { recursive: true, force: true }))
const sandbox = await probeIsolation('Sandbox')
/** Why this machine has no sandboxes, and none with network Private; false if it has. */
export const skip = sandbox.available ? false : sandbox.reason
export const networkProblem = sandbox.available ? (privateNetworkProblem(sandbox.sandbox?.slirp4netns) ?? false) : sandbox.reason

/** A process whose first thread ends, while another executes `python`. It looks like a zombie. */
export const endFirstThread = {
  skip: process.arch === 'x64' && existsSync('/usr/bin/python3') ? false : 'needs python3 on x86-64',
  script: (python: string) => `cat > first.py <<'END'
import ctypes, sys, threading, time
def work():
    while open("/proc/self/stat").read().rsplit(")")[1].split()[0] != "Z": time.sleep(0.01)
    ${python}
threading.Thread(target=work).start()
# SYS_exit ends only this thread.
ctypes.CDLL(None).syscall(60, 0)
END
/usr/bin/python3 first.py`,
}

export async function open(
  t: TestContext,
  level: IsolationLevel,
  more: { limits?: RunLimits; network?: Network; slirp4netns?: string; readable?: string[]; mutatedStackUid?: string } = {},
) {
  const runUid = randomUUID()
  const directory = await createRunDirectory(join(base, 'runs'), runUid)
  const abort = new AbortController()
  const exceeded: ExceededLimit[] = []
  const groups: number[] = []
  const isolation = new RunIsolation({
    level,
    ...(sandbox.available && { sandbox: { ...sandbox.sandbox!, ...(more.slirp4netns && { slirp4netns: more.slirp4netns }) } }),
    network: more.network ?? 'Host',
    limits: more.limits ?? {},
    runUid,
    mutatedStackUid: more.mutatedStackUid,
    directory,
    readable: more.readable ?? [],
    onExceeded: what => {
      exceeded.push(what)
      for (const group of groups) {
        try {
          process.kill(-group, 'SIGKILL')
        } catch {
          // It has ended meanwhile.
        }
      }
    },
  })
  t.after(async () => {
    await isolation.close()
    await directory.remove()
  })
  const runner = createProcessRunner({
    runUid,
    ...directory,
    wrapCommand: isolation.wrapCommand,
    onStart: group => void groups.push(group),
  })
  const run = async (script: string, onLine?: (line: string) => void, env: Record<string, string> = {}) => {
    const lines: string[] = []
    const keep = (line: string) => {
      lines.push(line)
      onLine?.(line)
    }
    const command = { command: 'sh', args: ['-c', script], cwd: directory.work, env, signal: abort.signal }
    const result = await runner({ ...command, onStdoutLine: keep, onStderrLine: keep, escalation: { graceMs: 5_000, killMs: 1_000 } })
    return { ...result, lines }
  }
  return { runUid, directory, isolation, run, runner, exceeded, abort, groups }
}
