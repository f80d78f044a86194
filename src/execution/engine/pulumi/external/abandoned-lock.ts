import { getOwn, isJsonObject, type Json } from '../../../../kubernetes/object/index.ts'
import { epochOfHostname } from '../../../workspace/index.ts'
import type { BackendLock } from './backend-lock.ts'

/** A command outside of a sandbox that takes the lock of the user's backend. It is stored before the command starts. */
export type RecordedCommand = {
  readonly runName: string
  readonly epoch: number
  readonly host: string
  readonly pid: number
  /** Wall clock of its host. */
  readonly startedAtMs: number
}

/** What a Run knows of those that took the lock before. */
export type LockFacts = {
  readonly stackUid: string
  /** Of this Run. Every Run of the Stack with a lower one has ended, with all that it started (invariants 1 and 4): otherwise this one would not run. */
  readonly epoch: number
  readonly recorded: readonly RecordedCommand[]
  /** When the process that has this pid here now was started, in milliseconds since the epoch. Undefined: there is none, or this is not that host. */
  startOf(host: string, pid: number): number | undefined
}

/** A lock is the first thing that a command takes. Later, another process may have its pid: one that began after the lock is not its holder. */
const maxLockDelayMs = 10 * 60_000
/** Start times are computed from the uptime. */
const clockErrorMs = 2_000

/**
 * The ended Run of this Stack that left the lock; undefined if that is not proven: then it is the lock of someone else, and stays (invariant 4).
 * Of a sandbox the host name alone identifies Stack and Run. Other hosts have processes that are not Oarlock's.
 */
export function abandonedBy(lock: BackendLock, { stackUid, epoch, recorded, startOf }: LockFacts): string | undefined {
  const sandboxEpoch = epochOfHostname(lock.host, stackUid)
  if (sandboxEpoch !== undefined) return sandboxEpoch < epoch ? `the Run with epoch ${sandboxEpoch}` : undefined
  const command = recorded.find(each => each.epoch < epoch && isOf(lock, each))
  if (!command) return undefined
  const startedAtMs = startOf(lock.host, lock.pid)
  const isHolderAlive = startedAtMs !== undefined && startedAtMs < lock.createdAtMs + 1_000 + clockErrorMs
  return isHolderAlive ? undefined : `Run ${command.runName}`
}

function isOf(lock: BackendLock, { host, pid, startedAtMs }: RecordedCommand): boolean {
  const delayMs = lock.createdAtMs - Math.floor(startedAtMs / 1_000) * 1_000
  return lock.host === host && lock.pid === pid && delayMs >= 0 && delayMs <= maxLockDelayMs
}

/** `ada@laptop (pid 4711) since 2026-11-23T20:18:34.000Z`, for the message about a lock that stays. */
export const formatLock = ({ user, host, pid, createdAtMs }: BackendLock): string =>
  `${user}@${host} (pid ${pid}) since ${new Date(createdAtMs).toISOString()}`

/** `--exec-agent` of a command: Pulumi Cloud records it with the update. */
export const updateAgent = (stackUid: string, epoch: number): string => `oarlock/${stackUid}/${epoch}`

/** The newest update of a stack in Pulumi Cloud. */
export type CloudUpdate = {
  readonly version: number
  readonly kind: string
  readonly startedAt: string
  readonly isRunning: boolean
  readonly agent: string | undefined
}

/** Reads what `pulumi stack history --json` prints; undefined if the stack has no update. */
export function parseNewestUpdate(text: string): CloudUpdate | undefined {
  const [newest] = JSON.parse(text) as unknown[]
  if (!isJsonObject(newest)) return undefined
  const { version, kind, startTime, result, environment } = newest
  const agent = isJsonObject(environment) ? getOwn(environment, 'exec.agent') : undefined
  return {
    ...{ version: Number(version), kind: String(kind), startedAt: String(startTime), isRunning: result === 'in-progress' },
    agent: typeof agent === 'string' ? agent : undefined,
  }
}

/** As {@link abandonedBy}, of an update in Pulumi Cloud. */
export function updateAbandonedBy(update: CloudUpdate, { stackUid, epoch }: Pick<LockFacts, 'stackUid' | 'epoch'>): string | undefined {
  const found = /^oarlock\/([^/]+)\/([0-9]{1,10})$/.exec(update.agent ?? '')
  const isEnded = update.isRunning && found?.[1] === stackUid && Number(found[2]) < epoch
  return isEnded ? `the Run with epoch ${found[2]}` : undefined
}

/** Commands of Runs whose locks may still be there. */
const maxRecorded = 10

/** @param value the Stack's record; one of another engine has no commands. */
export function parseRecorded(value: Json | undefined): RecordedCommand[] {
  if (!isJsonObject(value) || value.engine !== 'pulumi' || !Array.isArray(value.commands)) return []
  return value.commands.filter(isRecorded)
}

export const serializeRecorded = (commands: readonly RecordedCommand[]): Json => ({
  engine: 'pulumi',
  commands: commands.slice(-maxRecorded).map(each => ({ ...each })),
})

function isRecorded(value: unknown): value is RecordedCommand {
  if (!isJsonObject(value)) return false
  const { runName, host, epoch, pid, startedAtMs } = value
  return [runName, host].every(each => typeof each === 'string') && [epoch, pid, startedAtMs].every(Number.isFinite)
}
