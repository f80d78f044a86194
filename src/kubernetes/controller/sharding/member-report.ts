import { type Buckets, bucketCount } from './bucket.ts'
import { type OperatorReport, parseOperatorReport } from './operator-report.ts'

/** The annotation of a slot's Lease that has what its member acknowledged. */
export const reportAnnotation = 'sharding.oarlock.dev/report'

/** What a member acknowledges, in an annotation of its Lease. */
export type MemberReport = {
  /** The UID of the ring's Lease; empty: it has seen none. */
  readonly ring: string
  /** From this version on it works on nothing that the ring does not let it work on, except `busy`. */
  readonly stopped: number
  /** Its caches have all buckets that this version gives to it. */
  readonly prepared: number
  /** Buckets that it must give up, on which a reconcile is still running. */
  readonly busy: Buckets
  /** It is stopping and wants no buckets. */
  readonly isLeaving: boolean
  /** Undefined in the first write of a slot. */
  readonly operator?: OperatorReport | undefined
}

export const noReport: MemberReport = { ring: '', stopped: 0, prepared: 0, busy: [], isLeaving: false }

export function formatReport(report: MemberReport): string {
  return JSON.stringify(report)
}

/** Returns undefined for what is not a report. */
export function parseReport(text: string | undefined): MemberReport | undefined {
  if (text === undefined) return undefined
  try {
    const { ring, stopped, prepared, busy, isLeaving, operator: operatorValue } = JSON.parse(text) as Record<string, unknown>
    const isReport = typeof ring === 'string' && typeof stopped === 'number' && typeof prepared === 'number' && Array.isArray(busy)
    if (!isReport) return undefined
    const operator = parseOperatorReport(operatorValue)
    const buckets = [...new Set(busy.filter(isBucket))]
    return { ring, stopped, prepared, busy: buckets, isLeaving: isLeaving === true, ...(operator && { operator }) }
  } catch {
    return undefined
  }
}

function isBucket(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < bucketCount
}
