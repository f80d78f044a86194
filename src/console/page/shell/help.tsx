import { Dialog } from '../parts/dialog.tsx'
import { shortcuts } from './shortcuts.ts'

export function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys and filters" onClose={onClose}>
      <dl class="keys">
        {shortcuts.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>Filters</h3>
      <p>
        Terms are separated by spaces, and a row must match all of them: <code>tenant:a,b state:failed -engine:helm label:team=web</code>
      </p>
      <ul>
        <li>
          <code>,</code> separates alternatives, <code>-</code> excludes, <code>*</code> matches any text, <code>"…"</code> keeps spaces.
        </li>
        <li>Words without a field are looked for in names, reasons and messages.</li>
        <li>The filter and the order are in the address: copy it to share what you see.</li>
      </ul>
    </Dialog>
  )
}
