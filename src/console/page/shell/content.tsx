import { OverviewPage } from '../overview/overview-page.tsx'
import { QueuePage, RunsPage } from '../pages/runs.tsx'
import { StacksPage } from '../pages/stacks.tsx'
import { lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'
import { pathTo, route } from '../router.ts'

const FleetPage = lazy(async () => (await import('../pages/fleet.tsx')).FleetPage)
const StackPage = lazy(async () => (await import('../object/stack-page.tsx')).StackPage)
const PoolPage = lazy(async () => (await import('../pool/pool-page.tsx')).PoolPage)
const RunPage = lazy(async () => (await import('../run/run-page.tsx')).RunPage)

/** What the route shows. */
export function Content() {
  const [page = '', namespace, name, section, ...more] = route.value.path
  if (more.length === 0 && namespace !== undefined && name !== undefined) {
    if (page === 'stacks')
      return <StackPage key={`${namespace}/${name}`} namespace={namespace} name={name} {...(section !== undefined && { section })} />
    if (page === 'runs' && section === undefined) return <RunPage key={`${namespace}/${name}`} namespace={namespace} name={name} />
  }
  if (page === 'pools' && namespace !== undefined && name === undefined) return <PoolPage key={namespace} name={namespace} />
  if (namespace === undefined)
    switch (page) {
      case '':
        return <OverviewPage />
      case 'stacks':
        return <StacksPage />
      case 'runs':
        return <RunsPage />
      case 'queue':
        return <QueuePage />
      case 'workers':
      case 'pools':
      case 'tenants':
      case 'controllers':
      case 'partitions':
        return <FleetPage table={page} />
    }
  return (
    <Notice title="There is no such page">
      <a href={pathTo([])}>Overview</a>
    </Notice>
  )
}
