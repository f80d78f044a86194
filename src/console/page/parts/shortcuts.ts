import { useLayoutEffect } from 'preact/hooks'

/** Calls the handler of a key while the component is shown, except while the user types or a dialog is open. */
export function useShortcuts(handlers: Readonly<Record<string, () => void>>): void {
  // Before the page is painted: a key that is pressed when the rows have just appeared is not lost.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return
      const handler = Object.hasOwn(handlers, event.key) ? handlers[event.key] : undefined
      if (!handler || isTyping(event.target) || document.querySelector('dialog[open]')) return
      event.preventDefault()
      handler()
    }
    document.addEventListener('keydown', pressed)
    return () => document.removeEventListener('keydown', pressed)
  })
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.matches('input:not([type=checkbox]), textarea, select') || target.isContentEditable)
