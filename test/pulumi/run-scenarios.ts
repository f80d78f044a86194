import type { Json } from '../../src/kubernetes/object/index.ts'
import type { CommandControl } from './command-recording.ts'

/** One Run of a Stack whose program is `programs/run`. */
export type RecordedRun = {
  readonly intent: 'apply' | 'destroy' | 'refresh'
  readonly variables: Readonly<Record<string, Json>>
  readonly pendingCreates?: 'Clear'
  /** Another Run takes the lock when the request of the control is reached. */
  readonly isFenced?: boolean
  readonly controls?: readonly Pick<CommandControl, 'command' | 'body' | 'action'>[]
}

/** Secret; its name is in `sensitiveNames`. */
export const password = 'hunter2-of-the-run'
const variables = { length: 4, password }

/** The creation of the second resource begins. */
export const secondBegins = '"kind":0.*testprovider:index:Random::second'

/** What the Runs of a Stack do, one after the other. */
export const runScenarios: Readonly<Record<string, readonly RecordedRun[]>> = {
  lifecycle: [
    { intent: 'apply', variables },
    { intent: 'apply', variables },
    { intent: 'apply', variables: { ...variables, length: 5 } },
    { intent: 'refresh', variables: { ...variables, length: 5 } },
    { intent: 'destroy', variables: { ...variables, length: 5 } },
  ],
  killed: [
    { intent: 'apply', variables, controls: [{ command: 'up', body: secondBegins, action: 'kill' }] },
    { intent: 'apply', variables, pendingCreates: 'Clear' },
  ],
  fenced: [{ intent: 'apply', variables, isFenced: true, controls: [{ command: 'up', body: secondBegins, action: 'wait' }] }],
}
