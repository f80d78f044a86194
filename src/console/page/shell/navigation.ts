import type { Session } from '../../protocol/index.ts'
import type { IconName } from '../parts/icon.tsx'

export type Page = {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  /** Shown only if it is configured. */
  readonly feature?: Session['features'][number]
}

export const pages: readonly Page[] = [
  { path: '', label: 'Overview', icon: 'overview' },
  { path: 'stacks', label: 'Stacks', icon: 'stacks' },
  { path: 'runs', label: 'Runs', icon: 'runs' },
  { path: 'queue', label: 'Queue', icon: 'queue' },
  { path: 'workers', label: 'Workers', icon: 'workers' },
  { path: 'pools', label: 'Pools', icon: 'pools' },
  { path: 'tenants', label: 'Tenants', icon: 'tenants', feature: 'tenants' },
  { path: 'controllers', label: 'Controllers', icon: 'controllers', feature: 'controllers' },
  { path: 'partitions', label: 'Partitions', icon: 'partitions', feature: 'partitions' },
]

export const pagesFor = ({ features }: Session): readonly Page[] =>
  pages.filter(({ feature }) => feature === undefined || features.includes(feature))

/** So many pages fit below the content of a phone; the others are behind a button. */
export const phonePages = 4
