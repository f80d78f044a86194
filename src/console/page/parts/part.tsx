import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { request } from '../request.ts'
import { Notice } from './notice.tsx'
import { visibleText } from './visible-text.ts'

export type Part<Content> = { readonly content?: Content; readonly problem?: string; reload(): void }

/** What the console's API has at a path. Read again when `version` changes; until then the content before is kept. */
export function usePart<Content>(path: string, version = ''): Part<Content> {
  const [state, setState] = useState<{ path?: string; content?: Content; problem?: string }>({})
  const [count, setCount] = useState(0)
  useEffect(() => {
    // The server ends the work for a page that was left.
    const left = new AbortController()
    request<Content>('GET', path, undefined, left.signal).then(
      content => left.signal.aborted || setState({ path, content }),
      (error: Error) => left.signal.aborted || setState({ path, problem: error.message }),
    )
    return () => left.abort()
  }, [path, version, count])
  const { path: read, ...known } = state
  return { ...(read === path && known), reload: () => setCount(count + 1) }
}

/** A part of a page: while it is read, if it cannot be, and then its content. */
export function PartView<Content>({
  part: { content, problem },
  what,
  children,
}: {
  readonly part: Part<Content>
  /** As in `The outputs cannot be read`. */
  readonly what: string
  readonly children: (content: Content) => ComponentChildren
}) {
  if (problem !== undefined)
    return (
      <Notice isError title={`${what} cannot be read`}>
        <p>{visibleText(problem)}</p>
      </Notice>
    )
  if (content === undefined) return <div class="loading" aria-busy="true" />
  return children(content) as VNode
}

/** The path of a part of a Stack. */
export const stackPath = ({ namespace, name }: { readonly namespace: string; readonly name: string }, part: string): string =>
  `stacks/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${part}`
