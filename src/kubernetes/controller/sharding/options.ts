import { hostname } from 'node:os'
import type { LeaseAnnotations } from '../lease-annotations.ts'
import { maxSlots } from './bucket.ts'

/** How the replicas of an operator share its keys. All replicas of one operator must have the same `name`, `namespace` and durations; `slots` may change by a rolling update. */
export type ShardOptions = {
  /** Name of the ring, and prefix of the Leases of its slots (`<name>-ring`, `<name>-0` …); a DNS label. */
  name: string
  /** Namespace of these Leases. */
  namespace: string
  /** How many members may share the keys at most, usually the number of replicas: from 1 to 62. Further replicas wait for a free slot. */
  slots: number
  /** For people who read the Leases, at most 253 characters; default: the host's name. A process adds what makes it unique. */
  identity?: string | undefined
  /** How long others wait after the last renewal they saw before they take a slot; whole seconds, default 15,000. */
  leaseDurationMs?: number | undefined
  /** How long a member acts after it sent its last successful renewal; default 10,000, must be below leaseDurationMs. */
  renewDeadlineMs?: number | undefined
  /** Time between renewals; default 2,000. */
  retryPeriodMs?: number | undefined
  /** How long running reconciles of buckets that move away may finish before their signal aborts; default 5,000. */
  releaseGraceMs?: number | undefined
  /** What this member publishes about itself: read at each renewal, and written as annotations of the Lease of its slot. If it throws, this is logged. Default: nothing. */
  annotations?: LeaseAnnotations | undefined
}

/** {@link ShardOptions} with their defaults. */
export type ShardSettings = Required<{ [Option in Exclude<keyof ShardOptions, 'annotations'>]: NonNullable<ShardOptions[Option]> }>

/** Applies the defaults. @throws {RangeError} naming the option that is out of range. */
export function shardSettingsOf(options: ShardOptions): ShardSettings {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000, releaseGraceMs = 5_000, slots, name } = options
  const { identity = hostname() } = options
  if (!Number.isInteger(slots) || slots < 1 || slots > maxSlots) {
    throw new RangeError(`shards.slots must be an integer from 1 to ${maxSlots}, got ${slots}`)
  }
  if (!/^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$/.test(name)) {
    throw new RangeError(`shards.name must be a DNS label of at most 52 characters, got ${JSON.stringify(name)}`)
  }
  if (identity.length > 253) throw new RangeError(`shards.identity must have at most 253 characters, got ${identity.length}`)
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs && retryPeriodMs > 0)) {
    throw new RangeError(
      `shards.leaseDurationMs ${leaseDurationMs} must be > renewDeadlineMs ${renewDeadlineMs}, which must be > retryPeriodMs ${retryPeriodMs} > 0`,
    )
  }
  if (!(releaseGraceMs >= 0)) throw new RangeError(`shards.releaseGraceMs must be a number >= 0, got ${releaseGraceMs}`)
  return {
    name,
    namespace: options.namespace,
    slots,
    identity,
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
    releaseGraceMs,
  }
}
