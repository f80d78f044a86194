import { activeRun, phaseOf, type Run, type Stack, stackMessage, stackState } from '../../api/index.ts'
import { formatDuration, objectKey } from '../../kubernetes/object/index.ts'
import { type Color, oneLine, type Paint, pad, truncate } from '../output/style.ts'
import { fleetOutcomes, type StackOutcome } from './expectation.ts'

export type FleetRow = {
  key: string
  engine: string
  /** One word, such as Ready, Applying, Waiting. */
  state: string
  tone: 'good' | 'bad' | 'busy' | 'idle' | 'attention'
  /** The progress of the active Run, or why there is none. */
  detail: string
  /** How long the active Run has taken so far, or the last one took; empty if there was none. */
  time: string
  outcome: StackOutcome
}

/** One row for each Stack, ordered by namespace and name. */
export function fleetRows(stacks: readonly Stack[], runs: readonly Run[], nowMs: number): FleetRow[] {
  const outcomes = fleetOutcomes(stacks)
  const runsOf = Map.groupBy(runs, run => objectKey({ metadata: { name: run.spec.stackRef.name, namespace: run.metadata.namespace } }))
  return [...stacks]
    .sort((a, b) => (objectKey(a) < objectKey(b) ? -1 : 1))
    .map(stack => fleetRow(stack, runsOf.get(objectKey(stack)) ?? [], outcomes.get(objectKey(stack))!, nowMs))
}

function fleetRow(stack: Stack, runs: readonly Run[], outcome: StackOutcome, nowMs: number): FleetRow {
  const row = { key: objectKey(stack), engine: stack.spec.engine, outcome }
  const run = activeRun(runs)
  if (run) {
    const startedMs = Date.parse(run.status?.startedAt ?? run.metadata.creationTimestamp)
    const phase = phaseOf(run)
    const label = run.spec.type === 'Destroy' && phase === 'Applying' ? 'Destroying' : phase
    return {
      ...row,
      state: label,
      tone: phase === 'Queued' ? 'idle' : 'busy',
      detail: progressText(run),
      time: formatSeconds(Math.max(0, nowMs - startedMs)),
    }
  }
  const state = stackState(stack)
  const { reason, message } = stackMessage(stack)
  const last = runs.toSorted((a, b) => b.spec.epoch - a.spec.epoch)[0]
  const time = last ? runTime(last) : ''
  const detail = oneLine(message)
  switch (state) {
    case 'Ready':
      return { ...row, state, tone: 'good', detail: readyText(stack), time }
    case 'AwaitingApproval':
      return { ...row, state: 'Approval', tone: 'attention', detail, time }
    case 'PlanRejected':
      return { ...row, state: 'Rejected', tone: 'attention', detail, time }
    case 'Drifted':
      return { ...row, state, tone: 'attention', detail, time }
    case 'Failed':
    case 'Failing':
      return { ...row, state, tone: 'bad', detail, time }
    case 'EngineNotFound':
      return { ...row, state: 'NoEngine', tone: 'bad', detail, time }
    case 'Working':
      return { ...row, state: 'Waiting', tone: 'idle', detail: detail || reason, time: '' }
    default:
      return { ...row, state, tone: 'idle', detail, time: '' }
  }
}

function progressText({ status, spec }: Run): string {
  const { progress } = status ?? {}
  if (!progress || progress.total === 0) return oneLine(status?.message ?? (spec.reason === 'NewGeneration' ? '' : spec.reason))
  return oneLine(`${progress.done} of ${progress.total}${progress.current ? ` ${progress.current}` : ''}`)
}

function readyText({ status }: Stack): string {
  const count = status?.resources
  const resources = count === undefined ? '' : count === 1 ? '1 resource' : `${count} resources`
  const names = Object.keys(status?.outputs ?? {})
  return [resources, names.length > 0 ? `outputs ${names.join(', ')}` : ''].filter(Boolean).join(', ')
}

const tones: Record<FleetRow['tone'], { color: Color; mark: string }> = {
  good: { color: 'green', mark: '✓' },
  bad: { color: 'red', mark: '✗' },
  attention: { color: 'yellow', mark: '?' },
  busy: { color: 'cyan', mark: '' },
  idle: { color: 'dim', mark: '·' },
}
const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

export type Frame = { width: number; height: number; paint: Paint; frame: number; elapsedMs: number }

/** The live table, at most `width` columns wide and `height` lines high. Ready rows are hidden first. */
export function renderFleet(rows: readonly FleetRow[], { width, height, paint, frame, elapsedMs }: Frame): string[] {
  const keyWidth = Math.min(28, Math.max(5, ...rows.map(({ key }) => key.length)))
  const engineWidth = Math.max(6, ...rows.map(({ engine }) => engine.length))
  // As wide as the longest state (Preparing, Destroying) from the start, so that the columns do not move.
  const stateWidth = 10
  const timeWidth = 6
  const detailWidth = Math.max(0, width - keyWidth - engineWidth - stateWidth - timeWidth - 11)
  const maxRows = Math.max(1, height - 3)
  const shown = rows.length <= maxRows ? rows : selectRows(rows, maxRows - 1)
  const line = (mark: string, key: string, engine: string, state: string, detail: string, time: string) =>
    `${mark} ${pad(key, keyWidth)}  ${pad(engine, engineWidth)}  ${pad(state, stateWidth)}  ${pad(detail, detailWidth)}  ${time}`.trimEnd()
  const lines = shown.map(row => {
    const { color, mark } = tones[row.tone]
    const sign = row.tone === 'busy' ? spinner[frame % spinner.length]! : mark
    const time = row.time.padStart(timeWidth)
    return line(
      paint(color, sign),
      truncate(row.key, keyWidth),
      row.engine,
      paint(color, truncate(row.state, stateWidth)),
      paint('dim', truncate(row.detail, detailWidth)),
      time,
    )
  })
  const hidden = rows.length - shown.length
  if (hidden > 0) lines.push(paint('dim', `  … and ${hidden} more`))
  return [
    paint('bold', truncate(line(' ', 'STACK', 'ENGINE', 'STATE', '', ''), width)),
    ...lines,
    '',
    `  ${summaryText(rows)} ${paint('dim', `after ${formatSeconds(elapsedMs)}`)}`,
  ]
}

/** `12 of 14 as expected, 2 skipped` */
export function summaryText(rows: readonly FleetRow[]): string {
  const count = (kind: StackOutcome['kind']) => rows.filter(({ outcome }) => outcome.kind === kind).length
  const skipped = count('skipped')
  return `${count('reached')} of ${rows.length} Stacks as expected${skipped > 0 ? `, ${skipped} skipped (engine not installed)` : ''}`
}

/** States too short-lived to be worth a line. */
const transientStates = new Set(['Pending', 'Assigned', 'Preparing'])

/** The changes since the previous rows, one line for each Stack: for output that is not a terminal. */
export function changeLines(before: readonly FleetRow[], after: readonly FleetRow[]): string[] {
  const previous = new Map(before.map(row => [row.key, row]))
  return after
    .filter(row => previous.get(row.key)?.state !== row.state && !transientStates.has(row.state))
    .map(({ key, state, detail, time }) => `${key}: ${state}${detail ? ` - ${detail}` : ''}${time && ` (${time})`}`)
}

const toneRank = { busy: 0, bad: 1, attention: 2, idle: 3, good: 4 } as const
/** The most urgent rows, in their original order. */
function selectRows(rows: readonly FleetRow[], count: number): FleetRow[] {
  const kept = new Set([...rows].sort((a, b) => toneRank[a.tone] - toneRank[b.tone]).slice(0, count))
  return rows.filter(row => kept.has(row))
}

/** How long an ended Run took. Its timestamps have whole seconds. */
function runTime({ status }: Run): string {
  if (!status?.startedAt || !status.finishedAt) return ''
  const ms = Date.parse(status.finishedAt) - Date.parse(status.startedAt)
  return ms < 1_000 ? '<1s' : formatDuration(ms)
}

/** `0.4s`, `12.3s`, and from one minute on `1m12s`: `formatDuration` drops the tenths, which matter for short times. */
export function formatSeconds(ms: number): string {
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms)
}
