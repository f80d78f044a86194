import { useComputed } from '@preact/signals'
import { nowMs } from '../parts/clock.ts'
import { formatSeconds, formatTime } from '../parts/format.ts'
import type { TimelinePart } from './run-phases.ts'

/** Shorter bars could not be seen. */
const minPercent = 0.6

/** The parts of a Run below each other, each with a bar where it began and how long it took. */
export function Timeline({ parts }: { readonly parts: readonly TimelinePart[] }) {
  const isOpen = parts.some(({ toMs }) => toMs === undefined)
  const now = useComputed(() => (isOpen ? nowMs() : 0)).value
  const first = Math.min(...parts.map(({ fromMs }) => fromMs))
  const last = Math.max(...parts.map(({ fromMs, toMs }) => toMs ?? Math.max(now, fromMs)), first + 1)
  const percent = (ms: number) => (ms / (last - first)) * 100
  return (
    <ol class="plain timeline">
      {parts.map(({ label, fromMs, toMs, tone, detail, isRough }, index) => {
        const endMs = toMs ?? Math.max(now, fromMs)
        const width = Math.max(minPercent, percent(endMs - fromMs))
        return (
          <li key={`${label} ${index}`}>
            <span class="timeline-label">{label}</span>
            <span
              class="timeline-track"
              aria-hidden="true"
              title={`from ${formatTime(fromMs)}${toMs === undefined ? '' : ` to ${formatTime(toMs)}`}`}
            >
              <span
                class={`timeline-bar ${tone}`}
                style={{ left: `${Math.min(percent(fromMs - first), 100 - width)}%`, width: `${width}%` }}
              />
            </span>
            <span class="number">{isRough && endMs - fromMs < 1_000 ? '<1s' : formatSeconds((endMs - fromMs) / 1_000)}</span>
            {detail !== undefined && <span class="timeline-detail dim">{detail}</span>}
          </li>
        )
      })}
    </ol>
  )
}
