import { Dialog } from '../parts/dialog.tsx'

const shortcuts = [
  ['/', 'Focus the filter, or the search of a log'],
  ['f', 'Follow a log'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['Esc', 'Close a dialog, a menu or the completions'],
  ['?', 'This help'],
] as const

const filters = [
  ['state:failed,drifted', 'Stacks whose state is one of these'],
  ['-engine:pulumi', 'Rows without this value'],
  ['name:web*', 'Names that begin with web'],
  ['label:team=web', 'Stacks with this label'],
  ['attention:stuck-*', 'Stacks that the overview counts as stuck'],
  ['-attention:none', 'Stacks that need attention'],
  ['"two words"', 'Rows with this text in names, reasons and messages'],
] as const

export function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts and filters" onClose={onClose}>
      <dl class="shortcuts">
        {shortcuts.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>Filters</h3>
      <dl class="shortcuts filters">
        {filters.map(([filter, what]) => (
          <div key={filter}>
            <dt>
              <code>{filter}</code>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
