import { useEffect, useRef } from 'preact/hooks'

/** Links to the parts of the page of an object: each has an address of its own. On a phone they scroll. */
export function SectionNav({
  label,
  sections,
}: {
  readonly label: string
  readonly sections: readonly { readonly label: string; readonly href: string; readonly isCurrent: boolean }[]
}) {
  const list = useRef<HTMLUListElement>(null)
  const current = sections.find(({ isCurrent }) => isCurrent)?.href
  useEffect(() => {
    const link = list.current?.querySelector('[aria-current]')
    // Only the list scrolls, not the page.
    if (link instanceof HTMLElement && list.current) list.current.scrollLeft = link.offsetLeft - list.current.offsetLeft - 40
  }, [current])
  return (
    <nav class="sections" aria-label={label}>
      <ul class="plain" ref={list}>
        {sections.map(section => (
          <li key={section.href}>
            <a href={section.href} aria-current={section.isCurrent ? 'page' : undefined}>
              {section.label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
