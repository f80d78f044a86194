import { useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** A command that does the same as the page, to copy. */
export function Command({ text }: { readonly text: string }) {
  const [result, setResult] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setResult('copied')
    } catch {
      setResult('the browser does not allow copying: select the text')
    }
    setTimeout(() => setResult(''), 2_000)
  }
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="quiet square" aria-label={`Copy: ${text}`} title="Copy" onClick={() => void copy()}>
        <Icon name="copy" />
      </button>
      <output>{result}</output>
    </span>
  )
}

/** For commands that read the data directory. Its path is not shown to those who have not signed in. */
export const DataHint = () => (
  <p class="dim">
    Add <code>--data DIRECTORY</code> if <code>oarlock up</code> was started with it.
  </p>
)
