import type { ViewDelta } from '../../protocol/index.ts'
import { Notice } from '../parts/notice.tsx'
import { pathTo } from '../router.ts'

/** In place of an object that is not, or not yet, known. */
export function ObjectState({
  kind,
  name,
  error,
  isRead,
}: {
  readonly kind: 'Stack' | 'Run' | 'Pool'
  readonly name: string
  readonly error: ViewDelta['error']
  /** Whether the server has answered: it knows no row of the object. */
  readonly isRead: boolean
}) {
  const message = error?.message ?? (isRead ? 'it is not known here yet' : undefined)
  if (message === undefined) return <div class="loading" aria-busy="true" />
  const isMissing = error === undefined || error.code === 'NotFound'
  return (
    <Notice isError={!isMissing} title={isMissing ? `There is no ${kind} ${name}` : `${kind} ${name} cannot be read`}>
      <p>{message}</p>
      <a href={pathTo([`${kind.toLowerCase()}s`])}>All {kind}s</a>
    </Notice>
  )
}
