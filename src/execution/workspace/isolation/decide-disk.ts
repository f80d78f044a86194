import type { DiskUsage } from './disk-usage.ts'

/** Interval between the starts of two measurements. */
const intervalMs = 1_000
/** A measurement that takes long is followed by a pause of this many times its duration, so that measuring takes at most 5 % of the time. */
const pauseFactor = 20
/** The same while the file system fills by as much as the Run may still write: at most a quarter of the time. */
const urgentPauseFactor = 3
/** What an engine may write after it was interrupted, to save its state: at least this, or a quarter of the limit. */
const minOverrunBytes = 64 * 2 ** 20
/** How long an engine whose use cannot be measured may save its state. */
const unmeasuredMs = 10_000

/** Use of the whole file system. */
export type FileSystemUse = { bytes: number; inodes: number }

export type LastMeasurement = DiskUsage & { endedMs: number; durationMs: number; fileSystem: FileSystemUse }

/**
 * Whether the next measurement is due. One of a large directory takes a while, so how soon it is repeated depends on how much the file system, whose use
 * costs one system call, has grown since: other programs write to it, too, and may hide growth by deleting.
 */
export function isMeasurementDue(last: LastMeasurement, fileSystem: FileSystemUse, limitBytes: number, nowMs: number): boolean {
  const grownBytes = Math.max(fileSystem.bytes - last.fileSystem.bytes, minimumOf(fileSystem.inodes - last.fileSystem.inodes))
  const factor = last.bytes + grownBytes > limitBytes ? urgentPauseFactor : pauseFactor
  return nowMs - last.endedMs >= Math.max(intervalMs - last.durationMs, factor * last.durationMs)
}

/** What a Run was interrupted for. */
export type Interruption = { atMs: number; bytes: number }

/** More than this is not measured exactly: the Run is stopped. */
export function maxMeasuredBytes(limitBytes: number, interruption: Interruption | undefined): number {
  return interruption ? maxOverrun(limitBytes, interruption) : 2 * limitBytes
}

/**
 * Decides what follows from a measurement. A Run above its limit is interrupted, so that it can save its state; one that writes on is killed.
 * What cannot be measured counts as exceeded, what processes hide only if it was hidden in the measurement before, too.
 */
export function decideDisk(
  usage: DiskUsage,
  previous: DiskUsage | undefined,
  limitBytes: number,
  interruption: Interruption | undefined,
  nowMs: number,
): { kind: 'continue' } | { kind: 'interrupt' | 'kill'; problem?: string } {
  const problem = usage.problem ?? (previous?.processProblem !== undefined ? usage.processProblem : undefined)
  const isExceeded = usage.bytes > limitBytes
  if (!isExceeded && problem === undefined) return { kind: 'continue' }
  const reason = isExceeded || problem === undefined ? {} : { problem }
  if (!interruption) return { kind: 'interrupt', ...reason }
  const isUnmeasured = problem !== undefined && nowMs - interruption.atMs >= unmeasuredMs
  return isUnmeasured || usage.bytes > maxOverrun(limitBytes, interruption) ? { kind: 'kill', ...reason } : { kind: 'continue' }
}

const maxOverrun = (limitBytes: number, { bytes }: Interruption): number =>
  Math.max(limitBytes, bytes) + Math.max(minOverrunBytes, limitBytes / 4)

const minimumOf = (inodes: number): number => inodes * 4_096
