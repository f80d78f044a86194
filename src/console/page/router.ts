import { signal } from '@preact/signals'
import { pagePath } from '../protocol/index.ts'

/** The address below {@link pagePath}: its segments, and its query, which has the filter and the order of a table. */
export type Address = { readonly path: readonly string[]; readonly query: URLSearchParams }

export const address = signal<Address>(readAddress())

function readAddress(): Address {
  const path = location.pathname.slice(pagePath.length).split('/').filter(Boolean).map(decodeURIComponent)
  return { path, query: new URLSearchParams(location.search) }
}

/** The address of a page, such as `pageUrl(['stacks'], { filter: 'state:Failed' })`. Empty values are left out. */
export function pageUrl(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const params = new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1])))
  const search = params.toString().replaceAll('%3A', ':').replaceAll('%2C', ',')
  return pagePath + path.map(encodeURIComponent).join('/') + (search && `?${search}`)
}

/** Opens a page. `replace`: without a new entry in the history, for what changes with every key. */
export function navigate(url: string, { replace = false } = {}): void {
  if (url === location.pathname + location.search) return
  const isOtherPage = new URL(url, location.href).pathname !== location.pathname
  history[replace ? 'replaceState' : 'pushState'](null, '', url)
  address.value = readAddress()
  if (isOtherPage) document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true })
}

addEventListener('popstate', () => {
  address.value = readAddress()
})

// Every link to a page of the console is opened without loading the document again.
document.addEventListener('click', event => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = (event.target as Element).closest('a')
  if (!link || link.target || link.origin !== location.origin || link.hasAttribute('download')) return
  if (!link.pathname.startsWith(pagePath) || link.dataset.document !== undefined) return
  event.preventDefault()
  navigate(link.pathname + link.search)
})
