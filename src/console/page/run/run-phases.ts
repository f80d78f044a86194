import { phaseTones, type RunFacts, type Tone } from '../../protocol/index.ts'
import type { RunObject } from './run-object.ts'

/** Part of the time from the first request to the end of a Run. */
export type TimelinePart = {
  readonly label: string
  readonly fromMs: number
  /** Undefined: it has not ended. */
  readonly toMs?: number
  readonly tone: Tone
  readonly detail?: string
  /** It is known to a second only. */
  readonly isRough?: boolean
}

const working = ['preparing', 'planning', 'applying'] as const
const ended = new Set(['Succeeded', 'Failed', 'Canceled', 'Lost'])
const labels = { preparing: 'Prepare', planning: 'Plan', applying: 'Apply' } as const

/**
 * What a Run has waited for and done, in order: the plan and its approval where it applies an approved one, the queue, the start of its worker, and its phases.
 * Times are those of the API server and of the worker, with an accuracy of a second; the durations of phases are the worker's, in milliseconds.
 */
export function runPhases({ row, object, planRun }: Pick<RunFacts, 'row' | 'object' | 'planRun'>): TimelinePart[] {
  const { metadata, spec = {}, status = {} } = (object ?? {}) as RunObject
  if (!row || !metadata?.creationTimestamp) return []
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  const createdMs = Date.parse(spec.queuedSince ?? metadata.creationTimestamp)
  const [assignedMs, startedMs, finishedMs] = [time(spec.assignedAt), time(status.startedAt), time(status.finishedAt)]
  const parts: TimelinePart[] = approvalParts(planRun, spec.approvedPlan)
  const isEnded = ended.has(row.phase)
  const queuedUntil = assignedMs ?? (isEnded ? (finishedMs ?? createdMs) : undefined)
  const waits = assignedMs === undefined ? [status.message ?? status.reason].filter(text => text !== undefined).join(': ') : ''
  parts.push({
    label: 'Queue',
    fromMs: createdMs,
    ...(queuedUntil !== undefined && { toMs: Math.max(createdMs, queuedUntil) }),
    tone: 'idle',
    isRough: true,
    ...(waits !== '' && { detail: waits }),
  })
  if (assignedMs === undefined) return parts
  const startUntil = startedMs ?? (isEnded ? finishedMs : undefined)
  parts.push({
    label: 'Start',
    fromMs: assignedMs,
    ...(startUntil !== undefined && { toMs: Math.max(assignedMs, startUntil) }),
    tone: startUntil === undefined ? 'busy' : 'idle',
    isRough: true,
    detail: row.worker === undefined ? 'a worker' : `worker ${row.worker}`,
  })
  if (startedMs === undefined) return parts
  const seconds = status.phaseSeconds ?? {}
  let fromMs = startedMs
  for (const phase of working) {
    const duration = seconds[phase]
    if (duration === undefined) continue
    const detail = phase === 'preparing' ? preparation(status) : undefined
    parts.push({ label: labels[phase], fromMs, toMs: fromMs + duration * 1_000, tone: 'good', ...(detail !== undefined && { detail }) })
    fromMs += duration * 1_000
  }
  const last = parts.at(-1) as TimelinePart
  if (!isEnded) {
    const current = working.find(phase => phase === row.phase.toLowerCase()) ?? 'preparing'
    if (seconds[current] === undefined) parts.push({ label: labels[current], fromMs, tone: 'busy' })
  } else if (row.phase !== 'Succeeded') {
    const tone = phaseTones[row.phase] ?? 'bad'
    // Of a Run whose worker did not report it, the last phase is the one in which it was last seen.
    if (status.phaseSeconds && finishedMs !== undefined && finishedMs - fromMs < 2_000) parts[parts.length - 1] = { ...last, tone }
    else parts.push({ label: row.phase, fromMs, toMs: Math.max(fromMs, finishedMs ?? fromMs), tone })
  } else if (!status.phaseSeconds) parts.push({ label: 'Run', fromMs, toMs: Math.max(fromMs, finishedMs ?? fromMs), tone: 'good' })
  return parts
}

function approvalParts(planRun: RunFacts['planRun'], approved: NonNullable<RunObject['spec']>['approvedPlan']): TimelinePart[] {
  if (!planRun?.startedMs || !planRun.finishedMs || !approved?.at) return []
  const atMs = Date.parse(approved.at)
  return [
    { label: 'Plan', fromMs: planRun.startedMs, toMs: planRun.finishedMs, tone: 'good', detail: planRun.name },
    {
      label: 'Approval',
      fromMs: planRun.finishedMs,
      toMs: Math.max(planRun.finishedMs, atMs),
      tone: 'attention',
      ...(approved.user !== undefined && { detail: `by ${approved.user}` }),
    },
  ]
}

const sources = { Cached: 'cached', Waited: 'installed by another Run', Installed: 'installed' } as const

function preparation({ dependencies, providers }: NonNullable<RunObject['status']>): string | undefined {
  const parts = [
    dependencies && `${dependencies.manager} packages ${sources[dependencies.source]} in ${dependencies.seconds.toFixed(1)}s`,
    providers &&
      `providers: ${providers.cached} cached, ${providers.downloaded + providers.waited} downloaded in ${providers.seconds.toFixed(1)}s`,
  ].filter(part => part !== undefined)
  return parts.length > 0 ? parts.join('; ') : undefined
}
