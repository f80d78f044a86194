import type { Session, TableKind } from '../../protocol/index.ts'
import type { IconName } from '../parts/icon.tsx'

export type Page = {
  readonly path: '' | TableKind
  readonly title: string
  readonly icon: IconName
  readonly feature?: Session['features'][number]
}

/** In the order of the sidebar. A page with a feature is shown only where it is configured. */
export const pages: readonly Page[] = [
  { path: '', title: 'Overview', icon: 'overview' },
  { path: 'stacks', title: 'Stacks', icon: 'stacks' },
  { path: 'runs', title: 'Runs', icon: 'runs' },
  { path: 'queue', title: 'Queue', icon: 'queue' },
  { path: 'workers', title: 'Workers', icon: 'workers' },
  { path: 'pools', title: 'Pools', icon: 'pools' },
  { path: 'tenants', title: 'Tenants', icon: 'tenants', feature: 'tenants' },
  { path: 'controllers', title: 'Controllers', icon: 'controllers', feature: 'controllers' },
  { path: 'partitions', title: 'Partitions', icon: 'partitions', feature: 'partitions' },
]

export const shownPages = (session: Session): readonly Page[] =>
  pages.filter(({ feature }) => feature === undefined || session.features.includes(feature))
