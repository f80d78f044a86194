import type { Tone } from '../../protocol/index.ts'

/** A shape for each tone, so that colour is not the only difference. */
const shapes: Readonly<Record<Tone, string>> = {
  good: 'M2.5 6.3 5 8.8 9.5 3.5',
  bad: 'M3 3l6 6M9 3 3 9',
  attention: 'M6 2v4.500M6 9.400v.1',
  busy: 'M10 6a4 4 0 1 1-2-3.46',
  idle: 'M3 6h6',
}

export function ToneMark({ tone }: { readonly tone: Tone }) {
  return (
    <svg class={`mark tone-${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[tone]} />
    </svg>
  )
}

/** The name of a state with its mark. */
export function State({ tone = 'idle', text }: { readonly tone?: Tone | undefined; readonly text: string }) {
  return (
    <span class={`state tone-${tone}`}>
      <ToneMark tone={tone} />
      {text}
    </span>
  )
}

/** `AwaitingApproval` as `Awaiting approval`. */
export const spaced = (name: string): string =>
  name.replace(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`)
