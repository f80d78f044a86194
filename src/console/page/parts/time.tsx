import { useComputed } from '@preact/signals'
import { nowMs } from './clock.ts'
import { formatAge, formatDuration, formatTime } from './format.ts'

/** How long ago. Only the text changes as time passes. */
export function Age({ ms }: { readonly ms: number | undefined }) {
  return ms === undefined ? <Nothing /> : <AgeText key={ms} ms={ms} />
}

function AgeText({ ms }: { readonly ms: number }) {
  const text = useComputed(() => formatAge(nowMs() - ms))
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatTime(ms)}>
      {text}
    </time>
  )
}

/** How long until then; `due` when it has passed. */
export function Until({ ms }: { readonly ms: number | undefined }) {
  return ms === undefined ? <Nothing /> : <UntilText key={ms} ms={ms} />
}

function UntilText({ ms }: { readonly ms: number }) {
  const text = useComputed(() => (ms > nowMs() ? `in ${formatAge(ms - nowMs())}` : 'due'))
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatTime(ms)}>
      {text}
    </time>
  )
}

/** From start to end, or to now. */
export function Duration({ fromMs, toMs }: { readonly fromMs: number | undefined; readonly toMs: number | undefined }) {
  if (fromMs === undefined) return <Nothing />
  return toMs === undefined ? (
    <RunningDuration key={fromMs} fromMs={fromMs} />
  ) : (
    <span>{toMs - fromMs < 1_000 ? '<1s' : formatDuration(toMs - fromMs)}</span>
  )
}

function RunningDuration({ fromMs }: { readonly fromMs: number }) {
  const text = useComputed(() => formatDuration(nowMs() - fromMs))
  return <>{text}</>
}

/** A value that is missing. */
export const Nothing = () => <span class="nothing">–</span>
