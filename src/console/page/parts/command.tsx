import { Icon } from './icon.tsx'
import { notify } from './notices.tsx'

/** A command line, with a button that copies it. */
export function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <button
        type="button"
        class="button icon-only plain"
        aria-label={`Copy the command ${text}`}
        title="Copy"
        onClick={() => void copy(text)}
      >
        <Icon name="copy" />
      </button>
    </div>
  )
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    notify('good', 'Copied')
  } catch {
    notify('bad', 'The browser did not allow copying: select the text instead')
  }
}
