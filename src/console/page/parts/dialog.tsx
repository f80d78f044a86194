import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** A modal dialog, shown while it is rendered. Esc and its button close it; focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly isWide?: boolean
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const opener = document.activeElement
    const element = dialog.current as HTMLDialogElement
    element.showModal()
    return () => {
      // A dialog that was closed with Esc has returned the focus already, and the user may have moved it since.
      if (element.open && opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog ref={dialog} class={isWide ? 'wide' : ''} aria-labelledby={titleId} onClose={onClose}>
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet square" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}

/** The only button of a dialog that has nothing more to do. */
export const CloseFooter = ({ onClose }: { readonly onClose: () => void }) => (
  <footer>
    <button type="button" class="primary" onClick={onClose}>
      Close
    </button>
  </footer>
)
