import { computed, signal } from '@preact/signals'
import { pagePath } from '../protocol/index.ts'

export type Route = {
  /** Below {@link pagePath}, decoded, by segment. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
}

const address = signal(location.pathname + location.search)

export const route = computed<Route>(() => {
  const { pathname, searchParams } = new URL(address.value, location.origin)
  const path = pathname.startsWith(pagePath) ? pathname.slice(pagePath.length) : ''
  return { path: path.split('/').filter(Boolean).map(decode), query: searchParams }
})

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** The path of a page. Parameters without a value are left out. */
export function pathTo(segments: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value)
  const text = parameters.toString()
  return `${pagePath}${segments.map(encodeURIComponent).join('/')}${text && `?${text}`}`
}

/** @param replace whether the address replaces the current one in the history: for what changes while a user types. */
export function navigate(to: string, { replace = false } = {}): void {
  if (to === address.value) return
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  address.value = to
}

/** Opens links to pages of the console without loading the page again. */
export function startRouter(): void {
  window.addEventListener('popstate', () => {
    address.value = location.pathname + location.search
  })
  document.addEventListener('click', event => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = (event.target as Element).closest('a')
    if (!link || link.target || link.origin !== location.origin || !link.pathname.startsWith(pagePath) || link.hasAttribute('download'))
      return
    event.preventDefault()
    navigate(link.pathname + link.search)
  })
}
