/** Time from process start until the API responds, until the first sample Stack is Ready, and until the last one is. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Stack, stackResource } from '../src/api/index.ts'
import { findCondition, isConditionTrue } from '../src/kubernetes/object/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const rounds = 3
const timeoutMs = 180_000

export async function bench(): Promise<Bench> {
  const rows: Bench['rows'] = []
  for (let round = 1; round <= rounds; round++) rows.push(await measure(round))
  return {
    title: 'Start of the all-in-one process with the sample fleet',
    about: 'Seconds from process start, packages installed, empty data directory. "settled" = every Stack reached the state it expects.',
    rows,
  }
}

async function measure(round: number): Promise<Record<string, number>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(dataDir, ['--sample'])
  const seconds = () => (performance.now() - process.startedAtMs) / 1_000
  const apiAfter = seconds()
  try {
    let firstReady: number | undefined
    const settled = new Map<string, boolean>()
    const abort = AbortSignal.timeout(timeoutMs)
    const watch = process.client.resource(stackResource).watch({ signal: abort })
    for await (const { type, object } of watch) {
      if (type !== 'ADDED' && type !== 'MODIFIED') continue
      settled.set(`${object.metadata.namespace}/${object.metadata.name}`, isAsExpected(object))
      if (firstReady === undefined && isConditionTrue(object.status?.conditions, 'Ready')) firstReady = seconds()
      if (settled.size >= 12 && [...settled.values()].every(Boolean)) break
    }
    return {
      round,
      'API answers s': apiAfter,
      'first Ready s': firstReady ?? Number.NaN,
      'settled s': seconds(),
      stacks: settled.size,
      'RSS MB': process.rssMb(),
    }
  } finally {
    await process.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function isAsExpected(stack: Stack): boolean {
  const conditions = stack.status?.conditions
  const ready = findCondition(conditions, 'Ready')
  switch (stack.metadata.annotations?.['example.oarlock.dev/expect'] ?? 'Ready') {
    case 'AwaitingApproval':
      return isConditionTrue(conditions, 'AwaitingApproval')
    case 'Failed':
      return isConditionTrue(conditions, 'Stalled')
    default:
      return ready?.status === 'True' && ready.observedGeneration === stack.metadata.generation
  }
}
