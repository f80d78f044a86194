import { isAbsolute } from 'node:path'
import type { SupervisorMessage } from './supervisor-protocol.ts'

/** Of Linux; above it no process id exists. */
const maxPid = 2 ** 22
const maxPathLength = 4_096
const maxTextLength = 64 * 1_024
/** Far above any Lease. A later deadline would be none. */
const maxDeadlineMs = 24 * 3_600_000

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown, maxLength = maxTextLength): value is string =>
  typeof value === 'string' && value.length <= maxLength && !value.includes('\0')
const isOptional = (value: unknown, isValid: (value: unknown) => boolean) => value === undefined || isValid(value)
const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isPath = (value: unknown): value is string => isText(value, maxPathLength) && isAbsolute(value)
/** The directory of a Run has this name (run-directory.ts). */
const isUid = (value: unknown) => isText(value, 128) && /^[A-Za-z0-9][\w.-]*$/.test(value)
/** Process 1 is init, and a signal to group 1 goes to every process of the user. */
const isPid = (value: unknown) => Number.isInteger(value) && (value as number) > 1 && (value as number) <= maxPid

const isWorker = (value: unknown): boolean => isObject(value) && isText(value.id, 200) && isPid(value.pid) && isText(value.startTime, 32)

function isTimings(value: unknown): boolean {
  if (!isObject(value)) return false
  const steps = [0, value.interruptMs, value.terminateMs, value.killMs, maxDeadlineMs]
  return steps.every((step, index) => isTime(step) && (index === 0 || step > (steps[index - 1] as number)))
}

const isSalvage = (value: unknown): boolean =>
  isObject(value) &&
  isText(value.url) &&
  /^https?:\/\//.test(value.url) &&
  isOptional(value.socketPath, isPath) &&
  isOptional(value.caCertificate, text => isText(text)) &&
  isText(value.token) &&
  Number.isSafeInteger(value.epoch) &&
  isPath(value.path)

const isRun = (value: unknown): boolean =>
  isObject(value) &&
  isUid(value.uid) &&
  isPath(value.directory) &&
  isOptional(value.salvage, isSalvage) &&
  isOptional(value.endsByMs, isTime) &&
  isOptional(value.interrupt, target => target === 'Program' || target === 'Group')

const isRunEvent = ({ uid }: Fields) => isUid(uid)
const isGroupEvent = ({ uid, processGroupId }: Fields) => isUid(uid) && isPid(processGroupId)

const validators: { readonly [Kind in SupervisorMessage['kind']]: (message: Fields) => boolean } = {
  hello: ({ worker, times, runsDir, renewedAtMs }) => isWorker(worker) && isTimings(times) && isPath(runsDir) && isTime(renewedAtMs),
  renewed: ({ worker, atMs }) => isWorker(worker) && isTime(atMs),
  run: ({ run }) => isRun(run),
  credential: ({ token }) => isText(token),
  started: isGroupEvent,
  ended: isGroupEvent,
  interrupted: isRunEvent,
  saved: ({ uid, digest }) => isUid(uid) && isText(digest, 128),
  done: isRunEvent,
  abandoned: isRunEvent,
  disconnect: () => true,
}

/**
 * The message in a line of a worker; `unknown` for a kind of a later version, undefined if it is no message: a field is missing, of another type, or
 * out of bounds. Whatever the supervisor does with a message happens later, in timers too, where an error would end it for all workers of the host.
 */
export function parseMessage(value: object): SupervisorMessage | 'unknown' | undefined {
  if (!isObject(value) || typeof value.kind !== 'string') return undefined
  if (!Object.hasOwn(validators, value.kind)) return 'unknown'
  return validators[value.kind as SupervisorMessage['kind']](value) ? (value as SupervisorMessage) : undefined
}
