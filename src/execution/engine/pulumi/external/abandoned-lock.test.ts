import { deepEqual, equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sandboxHostname } from '../../../workspace/index.ts'
import {
  abandonedBy,
  type LockFacts,
  parseNewestUpdate,
  parseRecorded,
  type RecordedCommand,
  serializeRecorded,
  updateAbandonedBy,
  updateAgent,
} from './abandoned-lock.ts'
import type { BackendLock } from './backend-lock.ts'

const stackUid = '5f0d7c52-8f0e-4a44-9d3f-0f6f6f2c1d3e'
const startedAtMs = Date.parse('2026-11-23T20:18:34.900Z')
/** The CLI reports whole seconds. */
const lock: BackendLock = { url: 's3://states/lock', user: 'root', host: 'vm', pid: 4711, createdAtMs: Date.parse('2026-11-23T20:18:34Z') }
const command: RecordedCommand = { runName: 'shop-5f0d7-3', epoch: 3, host: 'vm', pid: 4711, startedAtMs }
const facts: LockFacts = { stackUid, epoch: 4, recorded: [command], startOf: () => undefined }
const minutes = (count: number) => count * 60_000

for (const { name, of = {}, with: other = {}, want } of [
  { name: 'of the recorded command of an earlier Run', want: 'Run shop-5f0d7-3' },
  { name: 'of a command of this Run', with: { epoch: 3 }, want: undefined },
  { name: 'of a command of a later Run', with: { epoch: 2 }, want: undefined },
  { name: 'of another host', of: { host: 'vm2' }, want: undefined },
  { name: 'of another process of the host', of: { pid: 4712 }, want: undefined },
  { name: 'from before the command', of: { createdAtMs: lock.createdAtMs - 1_000 }, want: undefined },
  { name: 'of a slow start', of: { createdAtMs: lock.createdAtMs + minutes(10) }, want: 'Run shop-5f0d7-3' },
  { name: 'from long after the command', of: { createdAtMs: lock.createdAtMs + minutes(10) + 1_000 }, want: undefined },
  { name: 'of a process that lives', with: { startOf: () => startedAtMs - 100 }, want: undefined },
  { name: 'of a process whose pid another one has since', with: { startOf: () => startedAtMs + minutes(1) }, want: 'Run shop-5f0d7-3' },
  { name: 'of a command that is one of several', with: { recorded: [{ ...command, pid: 1 }, command] }, want: 'Run shop-5f0d7-3' },
  { name: 'of an unknown process', with: { recorded: [] }, want: undefined },
  { name: 'of the sandbox of an earlier Run', of: { host: sandboxHostname(stackUid, 2), pid: 2 }, want: 'the Run with epoch 2' },
  { name: 'of the sandbox of this Run', of: { host: sandboxHostname(stackUid, 4) }, want: undefined },
  { name: 'of the sandbox of a later Run', of: { host: sandboxHostname(stackUid, 5) }, want: undefined },
  { name: 'of the sandbox of a Run of another Stack', of: { host: sandboxHostname(stackUid.replace('5', '6'), 2) }, want: undefined },
] as { name: string; of?: Partial<BackendLock>; with?: Partial<LockFacts>; want: string | undefined }[])
  test(`a lock ${name} ${want === undefined ? 'stays' : 'is removed'}`, () =>
    equal(abandonedBy({ ...lock, ...of }, { ...facts, ...other }), want))

describe('an update in Pulumi Cloud', () => {
  /** What `pulumi stack history --json --page=1 --page-size=1` of CLI 3.260.0 prints. */
  const history = (result: string, agent: string | undefined) =>
    JSON.stringify(
      [
        {
          ...{ version: 7, kind: 'update', startTime: '2026-11-23T20:18:34.000Z', message: '', config: {}, result },
          environment: { 'exec.kind': 'cli', ...(agent !== undefined && { 'exec.agent': agent }), updatePlan: 'false' },
        },
      ],
      undefined,
      2,
    )
  const abandoned = (text: string) => {
    const update = parseNewestUpdate(text)
    return update && updateAbandonedBy(update, { stackUid, epoch: 4 })
  }

  test('that an earlier Run has started is canceled', () =>
    equal(abandoned(history('in-progress', updateAgent(stackUid, 3))), 'the Run with epoch 3'))
  for (const [what, text] of [
    ['this Run has started', history('in-progress', updateAgent(stackUid, 4))],
    ['a Run of another Stack has started', history('in-progress', updateAgent('other', 3))],
    ['has ended', history('failed', updateAgent(stackUid, 3))],
    ['a user has started', history('in-progress', undefined)],
    ['another agent has started', history('in-progress', `pulumi/actions/${updateAgent(stackUid, 3)}`)],
    ['does not exist', '[]'],
  ] as const)
    test(`that ${what} stays`, () => equal(abandoned(text), undefined))
})

describe('the record of the commands that lock', () => {
  test('is read as it was written, and has the last ten', () => {
    const commands = Array.from({ length: 12 }, (_, epoch) => ({ ...command, epoch }))
    deepEqual(parseRecorded(serializeRecorded(commands)), commands.slice(2))
  })
  for (const [what, value] of [
    ['there is none', undefined],
    ['it is that of another engine', { engine: 'manifests', objects: [] }],
    ['it is malformed', { engine: 'pulumi', commands: [{ runName: 'a' }, { ...command, pid: 'x' }, null] }],
  ] as const)
    test(`is empty if ${what}`, () => deepEqual(parseRecorded(value as Parameters<typeof parseRecorded>[0]), []))
})
