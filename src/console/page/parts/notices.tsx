import { signal } from '@preact/signals'
import type { Tone } from '../../protocol/index.ts'
import { Icon } from './icon.tsx'
import { ToneMark } from './state.tsx'

type Notice = { readonly id: number; readonly tone: Tone; readonly text: string }
const notices = signal<readonly Notice[]>([])
let lastId = 0

/** Shows what an action did. What failed remains until the user closes it. */
export function notify(tone: Tone, text: string): void {
  const id = ++lastId
  notices.value = [...notices.value.slice(-3), { id, tone, text }]
  if (tone !== 'bad') setTimeout(() => close(id), 6_000)
}

const close = (id: number) => {
  notices.value = notices.value.filter(notice => notice.id !== id)
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, tone, text }) => (
        <div key={id} class={`notice tone-${tone}`}>
          <ToneMark tone={tone} />
          <span>{text}</span>
          <button type="button" class="button icon-only plain" aria-label="Close this message" onClick={() => close(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
