import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { testWorker } from '../../objects.testing.ts'
import { type DisruptionInput, decideDisruption } from './decide-disruption.ts'

const worker = (options: Parameters<typeof testWorker>[1] = {}, more: { cordon?: true; withNode?: true } = {}) => {
  const { metadata, ...rest } = testWorker('w', { lifecycle: 'Warm', ...options })
  const annotations = more.withNode && { annotations: { 'oarlock.dev/cordoned-with-node': 'true' } }
  return { ...rest, metadata: { ...metadata, ...annotations }, spec: { ...rest.spec, ...(more.cordon && { cordon: true }) } }
}
const busy = { 'oarlock.dev/busy': 'true' }
const idle = { 'oarlock.dev/busy': 'false' }

/** `busy` or `idle`: how the Pod is marked. `cordon` or `uncordon`: what is written to the Worker. A number: the time of the next decision. */
function summarize(input: Partial<DisruptionInput>): string {
  const { patchPod, patchWorker, requeueAfterMs } = decideDisruption({
    ...{ own: idle, worker: worker(), activeRuns: 0, isNodeCordoned: false, idleForMs: 0 },
    ...input,
  })
  const { annotations, labels } = patchPod?.metadata ?? {}
  const mark = labels && `${labels['oarlock.dev/busy'] === 'true' ? 'busy' : 'idle'}`
  if (annotations) deepEqual(annotations, { 'cluster-autoscaler.kubernetes.io/safe-to-evict': mark === 'busy' ? 'false' : 'true' })
  return [mark, patchWorker && (patchWorker.spec.cordon ? 'cordon' : 'uncordon'), requeueAfterMs]
    .filter(each => each !== undefined)
    .join(' ')
}

for (const [name, input, want] of [
  ['a worker that gets a Run is marked busy', { activeRuns: 1 }, 'busy'],
  ['one that is marked already is not written again', { own: busy, activeRuns: 1 }, ''],
  ['a Pod without the label counts as idle', { own: undefined, activeRuns: 1 }, 'busy'],
  ['the mark remains for 5 s after its last Run', { own: busy, idleForMs: 1_000 }, '4000'],
  ['and is removed then', { own: busy, idleForMs: 5_000 }, 'idle'],
  ['a OneShot worker that waits for its Run remains marked', { own: busy, worker: worker({ lifecycle: 'OneShot' }) }, '5000'],
  [
    'a Pod whose worker has not registered is left alone',
    { own: busy, worker: { ...worker(), status: { phase: 'Pending' } }, idleForMs: 60_000 },
    '',
  ],
  ['and so is one without a Worker', { own: busy, worker: undefined }, ''],
  ['a busy Warm worker on a cordoned node gets no more Runs', { own: busy, activeRuns: 1, isNodeCordoned: true }, 'cordon'],
  ['an idle one may be evicted immediately', { own: busy, isNodeCordoned: true }, 'idle cordon'],
  [
    'a cordoned worker is idle immediately',
    { own: busy, worker: worker({}, { cordon: true, withNode: true }), isNodeCordoned: true },
    'idle',
  ],
  ['a draining worker is idle immediately', { own: busy, worker: worker({ drain: true }) }, 'idle'],
  [
    'a OneShot worker on a cordoned node gets its Run',
    { own: busy, worker: worker({ lifecycle: 'OneShot' }), isNodeCordoned: true },
    '5000',
  ],
  ['a worker whose node is uncordoned gets Runs again', { worker: worker({}, { cordon: true, withNode: true }) }, 'uncordon'],
  ['one that a user cordoned does not', { worker: worker({}, { cordon: true }) }, ''],
] as const satisfies [string, Partial<DisruptionInput>, string][])
  test(name, () => deepEqual(summarize(input), want))
