import { equal, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'

type Claim = { session: string; atNs: bigint }

/** Starts a contender whose wall clock is off by `skewMs`; its claims are appended to `claims`. */
function contend(server: string, identity: string, skewMs: number, claims: Claim[]): ChildProcess {
  const program = join(import.meta.dirname, 'contender.testing.ts')
  const child = spawn(process.execPath, [program, server, identity, String(skewMs)], { stdio: ['ignore', 'pipe', 'inherit'] })
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', line => {
    const [session = '', atNs = '0'] = line.split(' ')
    claims.push({ session, atNs: BigInt(atNs) })
  })
  return child
}

test('invariant 2: of two processes whose clocks disagree and jump by an hour, one stopped by SIGSTOP, never two lead', async () => {
  const api = await InMemoryApi.start()
  const claims: Claim[] = []
  const children = new Map([
    ['ann', contend(api.server.url, 'ann', 3_600_000, claims)],
    ['bob', contend(api.server.url, 'bob', -3_600_000, claims)],
  ])
  const leader = () => claims.at(-1)?.session.split('-')[0]
  try {
    await eventually(() => leader() !== undefined, 'a leader', 20_000)
    for (let round = 0; round < 2; round++) {
      const stopped = leader() as string
      const other = stopped === 'ann' ? 'bob' : 'ann'
      children.get(stopped)?.kill('SIGSTOP')
      await eventually(() => leader() === other, `${other} takes over`, 20_000)
      children.get(stopped)?.kill('SIGCONT')
      // What it believed when it was stopped must not take effect now.
      const before = claims.length
      await eventually(() => claims.length > before + 50, 'more claims', 20_000)
    }
    for (const child of children.values()) {
      const ended = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGTERM')
      equal(await ended, 0, 'SIGTERM ends it gracefully')
    }
    const sessions = new Map<string, { firstNs: bigint; lastNs: bigint }>()
    for (const { session, atNs } of claims) {
      const known = sessions.get(session)
      if (known) known.lastNs = atNs
      else sessions.set(session, { firstNs: atNs, lastNs: atNs })
    }
    const inOrder = [...sessions].sort(([, a], [, b]) => (a.firstNs < b.firstNs ? -1 : 1))
    ok(inOrder.length >= 3, inOrder.map(([session]) => session).join())
    for (const [index, [session, { firstNs }]] of inOrder.entries()) {
      const before = inOrder[index - 1]
      if (before) ok(firstNs > before[1].lastNs, `${session} led while ${before[0]} did`)
    }
  } finally {
    for (const child of children.values()) child.kill('SIGKILL')
    await api.close()
  }
})
