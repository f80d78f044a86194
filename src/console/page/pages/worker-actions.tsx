import { useState } from 'preact/hooks'
import { Actions } from '../parts/actions.tsx'
import { Dialog } from '../parts/dialog.tsx'

/** Opens the actions of a worker: they are read when the user asks for them, not for each row. */
export function WorkerActions({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="small" aria-label={`Actions of worker ${name}`} onClick={() => setOpen(true)}>
        Actions
      </button>
      {isOpen && (
        <Dialog title={`Worker ${name}`} onClose={() => setOpen(false)}>
          <Actions target={{ kind: 'workers', name }} version={name} />
        </Dialog>
      )}
    </>
  )
}
