import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'

/** A button that opens a panel below it. A click elsewhere and Esc close it. */
export function Menu({ label, icon, children }: { readonly label: string; readonly icon: IconName; readonly children: ComponentChildren }) {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      if (menu.current?.open && !menu.current.contains(event.target as Node)) menu.current.open = false
    }
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || !menu.current?.open) return
      menu.current.open = false
      menu.current.querySelector('summary')?.focus()
    }
    document.addEventListener('pointerdown', close)
    document.addEventListener('focusin', close)
    document.addEventListener('keydown', pressed)
    return () => {
      document.removeEventListener('pointerdown', close)
      document.removeEventListener('focusin', close)
      document.removeEventListener('keydown', pressed)
    }
  }, [])
  return (
    <details class="menu" ref={menu}>
      <summary class="button">
        <Icon name={icon} />
        <span>{label}</span>
      </summary>
      <div class="panel">{children}</div>
    </details>
  )
}
