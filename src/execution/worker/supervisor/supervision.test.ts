import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { SupervisedWorkers } from './supervised-workers.ts'
import { Supervision, type SupervisionAction } from './supervision.ts'
import type { SupervisorMessage } from './supervisor-protocol.ts'

const times = { interruptMs: 1_000, terminateMs: 2_000, killMs: 3_000 }
const started = { kind: 'started', uid: 'r', processGroupId: 42 } as const

function supervise(renewedAtMs = 0): Supervision {
  const supervision = new Supervision({ times, renewedAtMs, nowMs: 0 })
  supervision.step({ kind: 'message', message: { kind: 'run', run: { uid: 'r', directory: '/runs/r', salvage: undefined } } }, 0)
  supervision.step({ kind: 'message', message: started }, 0)
  return supervision
}

const signals = (actions: readonly SupervisionAction[]) => actions.flatMap(action => (action.kind === 'signal' ? [action.send] : []))

test('invariant 2: a renewal at a later time than now postpones no deadline', () => {
  const fromHello = supervise(1e12)
  deepEqual(signals(fromHello.step({ kind: 'check' }, 1_200)), ['SIGINT'])
  const fromRenewal = supervise()
  fromRenewal.step({ kind: 'renewed', atMs: 1e12 }, 500)
  deepEqual(signals(fromRenewal.step({ kind: 'check' }, 1_700)), ['SIGINT'])
})

test('a Run that is supervised is not replaced by one of the same UID, whose groups would run without a deadline', () => {
  const supervision = supervise()
  const message = { kind: 'run', run: { uid: 'r', directory: '/runs/r', salvage: undefined } } as const
  throws(() => supervision.step({ kind: 'message', message }, 0), /supervised already/)
  deepEqual(supervision.groupsOf('r'), [42])
})

test('invariant 10: Runs of a worker and groups of a Run are limited', () => {
  const supervision = supervise()
  for (let group = 100; group < 1_000; group++) supervision.step({ kind: 'message', message: { ...started, processGroupId: group } }, 0)
  deepEqual(supervision.groupsOf('r').length, 256)
  const run = (uid: string) =>
    ({ kind: 'message', message: { kind: 'run', run: { uid, directory: '/runs', salvage: undefined } } }) as const
  for (let number = 1; number < 256; number++) supervision.step(run(`r${number}`), 0)
  throws(() => supervision.step(run('one-more'), 0), /limit of 256 Runs/)
})

test('a second hello on a connection closes it: the first worker would never be released', () => {
  let supervised = 0
  let closed = 0
  const workers = new SupervisedWorkers({
    supervise: () => {
      supervised++
      return { handle: () => {}, settled: async () => {} }
    },
    onWorker: () => {},
    track: () => {},
  })
  const hello = (id: string): SupervisorMessage => ({
    kind: 'hello',
    worker: { id, pid: 7, startTime: '1' },
    times,
    runsDir: '/runs',
    renewedAtMs: 0,
  })
  const connection = workers.connect(
    () => {},
    () => closed++,
  )
  connection.onMessage(hello('a'))
  connection.onMessage(hello('b'))
  deepEqual({ supervised, closed, size: workers.size }, { supervised: 1, closed: 1, size: 1 })
  connection.onClose()
  deepEqual(workers.size, 0)
})
