import { useEffect, useRef, useState } from 'preact/hooks'
import { visibleText } from '../../parts/visible-text.ts'
import { navigate, pathTo } from '../../router.ts'
import { ResourceView } from './resource-view.tsx'

/** A resource, which is read when it is opened. The address of the page has the one that was opened last: it is its link. */
export function ResourceRow({
  stack,
  version,
  address,
  provider,
  isLinked,
}: {
  readonly stack: { readonly namespace: string; readonly name: string }
  readonly version: number | undefined
  readonly address: string
  readonly provider: string
  readonly isLinked: boolean
}) {
  const [isOpen, setIsOpen] = useState(isLinked)
  const button = useRef<HTMLButtonElement>(null)
  /** What the user opens is in view already. */
  const wasClicked = useRef(false)
  useEffect(() => {
    if (isLinked && !wasClicked.current) {
      setIsOpen(true)
      button.current?.scrollIntoView({ block: 'start' })
      button.current?.focus({ preventScroll: true })
    }
    wasClicked.current = false
  }, [isLinked])
  const toggle = () => {
    setIsOpen(!isOpen)
    if (isOpen && !isLinked) return
    wasClicked.current = !isOpen && !isLinked
    const path = pathTo(['stacks', stack.namespace, stack.name, 'resources'], { resource: isOpen ? undefined : address })
    navigate(path, { replace: true })
  }
  return (
    <li>
      <button type="button" class="quiet disclosure" ref={button} aria-expanded={isOpen} onClick={toggle}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
        <code>{visibleText(address)}</code>
      </button>
      <span class="dim">{visibleText(provider)}</span>
      {isOpen && <ResourceView stack={stack} version={version} address={address} />}
    </li>
  )
}
