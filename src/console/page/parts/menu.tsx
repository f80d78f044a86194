import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'

type Props = {
  readonly label: string
  readonly icon?: IconName
  /** Whether only the icon is visible. */
  readonly compact?: boolean
  readonly children: ComponentChildren
}

/** A button that opens a panel. Esc, a click elsewhere and a link in it close it. */
export function Menu({ label, icon, compact = false, children }: Props) {
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const menu = details.current
      if (!menu?.open) return
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return
        event.stopPropagation()
        menu.querySelector('summary')?.focus()
        menu.open = false
      } else if (!menu.contains(event.target as Node) || (event.target as Element).closest('a')) menu.open = false
    }
    document.addEventListener('click', close)
    document.addEventListener('keydown', close, true)
    return () => {
      document.removeEventListener('click', close)
      document.removeEventListener('keydown', close, true)
    }
  }, [])
  return (
    <details class="menu" ref={details}>
      <summary class={compact ? 'button icon-only' : 'button'} aria-label={compact ? label : undefined} title={compact ? label : undefined}>
        {icon && <Icon name={icon} />}
        {!compact && <span>{label}</span>}
      </summary>
      <div class="panel">{children}</div>
    </details>
  )
}
