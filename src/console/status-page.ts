import type { Run, Stack, Worker } from '../api/index.ts'
import { isBlockedReason, isEnded, phaseOf } from '../api/index.ts'
import { findCondition, formatDuration, isConditionTrue } from '../kubernetes/object/index.ts'

export type StatusPageFacts = {
  stacks: readonly Stack[]
  runs: readonly Run[]
  workers: readonly Worker[]
  version: string
  apiUrl: string
  nowMs: number
}

/** Limit of rows per table, so that the page of a large fleet stays small. It shows how many rows are hidden. */
const maxRows = 500
const refreshSeconds = 3

/** The status page: the current Stacks, Runs and Workers, without outputs and variables (invariant 9). */
export function renderStatusPage(facts: StatusPageFacts): string {
  const { stacks, runs, workers, version, apiUrl, nowMs } = facts
  const age = (time: string | undefined) => (time ? formatDuration(Math.max(0, nowMs - Date.parse(time))) : '')
  const ready = stacks.filter(stack => isConditionTrue(stack.status?.conditions, 'Ready')).length
  const active = runs.filter(run => !isEnded(run)).length
  const stackRows = [...stacks].sort(byName).map(stack => {
    const { metadata, spec, status } = stack
    const state = stackState(stack)
    return [
      metadata.namespace,
      metadata.name,
      spec.engine,
      { text: state.text, tone: state.tone },
      status?.resources ?? '',
      state.message,
      age(metadata.creationTimestamp),
    ]
  })
  const runRows = [...runs].sort(newestFirst).map(({ metadata, spec, status }) => {
    const phase = phaseOf({ spec, status })
    const progress = status?.progress && !isEnded({ status }) ? `${status.progress.done} of ${status.progress.total}` : ''
    return [
      metadata.namespace,
      metadata.name,
      spec.type,
      { text: phase, tone: phaseTones[phase] ?? 'busy' },
      progress,
      spec.workerName ?? '',
      status?.message ?? '',
      age(metadata.creationTimestamp),
    ]
  })
  const workerRows = [...workers]
    .sort(byName)
    .map(({ metadata, spec, status }) => [
      metadata.name,
      spec.pool,
      status?.phase ?? '',
      (status?.runs ?? []).join(', '),
      status?.host ?? '',
      age(metadata.creationTimestamp),
    ])
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${refreshSeconds}">
<title>${ready} of ${stacks.length} ready · Oarlock</title>
<style>${style}</style>
</head>
<body>
<header><h1>Oarlock</h1><p><b>${ready}</b> of <b>${stacks.length}</b> Stacks ready · <b>${active}</b> active Runs · <b>${workers.length}</b> Workers</p></header>
${table('Stacks', ['Namespace', 'Name', 'Engine', 'State', 'Resources', 'Message', 'Age'], stackRows)}
${table('Runs', ['Namespace', 'Name', 'Type', 'Phase', 'Progress', 'Worker', 'Message', 'Age'], runRows)}
${table('Workers', ['Name', 'Pool', 'Phase', 'Runs', 'Host', 'Age'], workerRows)}
<footer>oarlock ${escapeHtml(version)} · API ${escapeHtml(apiUrl)} · <a href="/metrics">metrics</a> · <a href="/readyz">readyz</a></footer>
</body>
</html>
`
}

type Tone = 'good' | 'bad' | 'attention' | 'busy' | 'idle'
type Cell = string | number | undefined | { text: string; tone: Tone }

function stackState({ status }: Stack): { text: string; tone: Tone; message: string } {
  const conditions = status?.conditions
  const message = findCondition(conditions, 'Ready')?.message ?? ''
  const of = (text: string, tone: Tone) => ({ text, tone, message })
  const { status: isReady, reason = 'Pending' } = findCondition(conditions, 'Ready') ?? {}
  if (isReady === 'True') return of('Ready', 'good')
  if (isConditionTrue(conditions, 'Stalled') || reason === 'PersistentFailure' || isBlockedReason(reason)) return of(reason, 'bad')
  if (isConditionTrue(conditions, 'Reconciling')) return of(reason, 'busy')
  const needsUser = reason === 'AwaitingApproval' || reason === 'Drifted' || reason === 'ApplyIncomplete'
  return of(reason, needsUser ? 'attention' : 'idle')
}

const phaseTones: Record<string, Tone> = { Queued: 'idle', Succeeded: 'good', Failed: 'bad', Lost: 'bad', Canceled: 'attention' }

function table(title: string, headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const body = rows.slice(0, maxRows).map(row => `<tr>${row.map(cellHtml).join('')}</tr>`)
  const rest = rows.length - body.length
  if (rest > 0) body.push(`<tr><td colspan="${headers.length}">… and ${rest} more</td></tr>`)
  if (rows.length === 0) body.push(`<tr><td colspan="${headers.length}" class="idle">none</td></tr>`)
  const head = headers.map(header => `<th scope="col">${header}</th>`).join('')
  return `<section><h2>${title} <small>${rows.length}</small></h2><div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div></section>`
}

function cellHtml(cell: Cell): string {
  if (typeof cell === 'object') return `<td class="${cell.tone}">${escapeHtml(cell.text)}</td>`
  return `<td>${escapeHtml(String(cell ?? ''))}</td>`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escapeHtml = (text: string) => text.replace(/[&<>"']/g, letter => entities[letter]!)

type Named = { metadata: { namespace?: string; name: string } }
const keyOf = ({ metadata }: Named) => `${metadata.namespace ?? ''}/${metadata.name}`
const byName = (a: Named, b: Named) => (keyOf(a) < keyOf(b) ? -1 : 1)
const newestFirst = (a: Run, b: Run) =>
  Number(isEnded(a)) - Number(isEnded(b)) || (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1)

const style = `
:root { color-scheme: light dark; --line: light-dark(#ddd, #333); --soft: light-dark(#666, #999) }
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1400px; padding: 1rem }
header { display: flex; gap: 1.5rem; align-items: baseline; flex-wrap: wrap }
h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: 1rem; margin: 1.5rem 0 .4rem } small, footer { color: var(--soft); font-weight: normal }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; white-space: nowrap }
td:nth-last-child(2) { white-space: normal; min-width: 20rem }
th { color: var(--soft); font-weight: 500 } footer { margin-top: 2rem }
.good { color: light-dark(#11702f, #5fd38a) } .bad { color: light-dark(#b3261e, #ff8a80); font-weight: 600 }
.attention { color: light-dark(#8a5a00, #ffcc66); font-weight: 600 } .busy { color: light-dark(#0b5cad, #7cb7ff) } .idle { color: var(--soft) }
`
