import { runResource, type Stack, stackResource, workerPoolResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { KubeObject, Resource } from '../../kubernetes/object/index.ts'
import { type History, overviewOf, type Projections, type RowTable, relatedRuns, tableView, type ViewContent } from '../projection/index.ts'
import type { PoolFacts, RunFacts, RunRow, StackFacts, TableKind, TenantRow, ViewQuery } from '../protocol/index.ts'
import { errorBody, failedMessage } from './error-response.ts'
import type { Visibility, Visible } from './visibility.ts'

export type ViewSources = {
  readonly projections: Projections
  readonly history: History
  readonly visibility: Visibility
  /** With the rights of the user. */
  client(): Promise<Client>
  nowMs(): number
  onError(error: unknown): void
}

type AnyRow = Readonly<Record<string, unknown>> & { readonly key: string }

/** What changes when the view may have: it is computed again only then. Rights, and what depends on the time, are followed by their period. */
export function versionOf(query: ViewQuery, { projections, visibility }: ViewSources): readonly unknown[] {
  return [visibility.period, ...rowVersions(query, projections)]
}

function rowVersions(query: ViewQuery, { tables }: Projections): readonly unknown[] {
  switch (query.kind) {
    case 'overview':
      return [tables.stacks.version, tables.runs.version, tables.workers.version]
    // A row is another one when its object has changed, and that of a Stack when its active Run has.
    case 'stack':
      return [tables.stacks.get(`${query.namespace}/${query.name}`)]
    case 'run': {
      const run = tables.runs.get(`${query.namespace}/${query.name}`)
      return [run, run && tables.stacks.get(`${query.namespace}/${run.stack}`), hasWorker(run, tables)]
    }
    case 'queue':
      return [tables.runs.version]
    case 'tenants':
      return [tables.tenants.version, tables.stacks.version]
    case 'pool':
      return [tables.pools.get(query.name)]
    case 'history':
      return []
    default:
      return [tables[query.kind].version]
  }
}

const hasWorker = (run: RunRow | undefined, { workers }: Projections['tables']) =>
  run?.worker !== undefined && workers.get(run.worker) !== undefined

/** What a user sees of a view now. Of a failure of the console the user sees no text: it is logged. */
export async function viewContent(query: ViewQuery, sources: ViewSources): Promise<ViewContent> {
  try {
    return await contentOf(query, sources)
  } catch (error) {
    const body = errorBody(error)
    if (!body) sources.onError(error)
    const code = body?.code === 403 ? 'Forbidden' : body?.code === 404 ? 'NotFound' : 'Unavailable'
    return { error: { code, message: body?.message ?? failedMessage } }
  }
}

async function contentOf(query: ViewQuery, sources: ViewSources): Promise<ViewContent> {
  const { projections, history, nowMs } = sources
  const { tables } = projections
  switch (query.kind) {
    case 'overview': {
      const [stacks, runs, workers] = await Promise.all([
        visibleRows('stacks', tables.stacks, sources),
        visibleRows('runs', tables.runs, sources),
        visibleRows('workers', tables.workers, sources),
      ])
      const shown = { stacks: stacks.rows, runs: runs.rows, workers: workers.isHidden ? undefined : workers.rows }
      return {
        facts: {
          isWhole: { stacks: stacks.isWhole, runs: runs.isWhole },
          ...overviewOf({ ...shown, allRuns: tables.runs.values(), nowMs: nowMs() }),
        },
      }
    }
    case 'stack':
      return await stackContent(query, sources)
    case 'run':
      return await runContent(query, sources)
    case 'pool':
      return await poolContent(query, sources)
    case 'history': {
      if (query.pool !== undefined) {
        const { all } = await sources.visibility.of('pools', () => [])
        if (!all) return { error: { code: 'Forbidden', message: 'you may not list pools' } }
        return { facts: history.poolFacts(nowMs(), query.minutes, query.pool) }
      }
      // Numbers of the whole fleet: for those who may see all of it.
      const visible = await sources.visibility.of('stacks', () => [])
      if (!visible.all)
        return {
          error: { code: 'Forbidden', message: 'charts show the whole fleet: they need the right to list Stacks in all namespaces' },
        }
      return { facts: history.facts(nowMs(), query.minutes) }
    }
    default: {
      const { rows, isHidden } = await visibleRows(query.kind, tableOf(query.kind, projections), sources)
      if (isHidden) return { error: { code: 'Forbidden', message: `you may not list ${query.kind === 'queue' ? 'Runs' : query.kind}` } }
      const shown = query.kind === 'queue' ? queued(rows) : query.kind === 'tenants' ? withStacks(rows, projections) : rows
      const { facts, rows: page } = tableView(query.kind, shown, query, nowMs())
      return { facts, rows: page }
    }
  }
}

function tableOf(kind: TableKind, { tables }: Projections): RowTable<AnyRow> {
  return (kind === 'queue' ? tables.runs : tables[kind]) as unknown as RowTable<AnyRow>
}

/** `isHidden`: of a kind without namespaces, that the user may not list. `isWhole`: the user may list it in all namespaces. */
async function visibleRows<Row extends { readonly key: string }>(
  kind: TableKind,
  table: RowTable<Row>,
  { visibility }: ViewSources,
): Promise<{ readonly rows: Iterable<Row>; readonly isHidden: boolean; readonly isWhole: boolean }> {
  const isNamespaced = kind === 'stacks' || kind === 'runs' || kind === 'queue'
  const visible = await visibility.of(kind, () => namespacesOf(table))
  if (visible.all) return { rows: table.values(), isHidden: false, isWhole: true }
  if (!isNamespaced) return { rows: [], isHidden: true, isWhole: false }
  return { rows: filtered(table, visible), isHidden: false, isWhole: false }
}

function* filtered<Row extends { readonly key: string }>(table: RowTable<Row>, visible: Visible & { readonly all: false }): Generator<Row> {
  for (const row of table.values()) if (visible.namespaces.has((row as unknown as { namespace: string }).namespace)) yield row
}

function namespacesOf(table: RowTable<{ readonly key: string }>): Set<string> {
  const found = new Set<string>()
  for (const row of table.values()) found.add((row as unknown as { namespace: string }).namespace)
  return found
}

function* queued(rows: Iterable<AnyRow>): Generator<AnyRow> {
  for (const row of rows) if (row.phase === 'Queued') yield row
}

function withStacks(rows: Iterable<AnyRow>, { tables }: Projections): AnyRow[] {
  const counts = new Map<string, number>()
  for (const { tenant } of tables.stacks.values()) if (tenant !== undefined) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  return [...rows].map(row => ({ ...row, stacks: counts.get((row as unknown as TenantRow).name) ?? 0 }))
}

async function stackContent(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  sources: ViewSources,
): Promise<ViewContent> {
  const { projections } = sources
  const object = await read(await sources.client(), stackResource as Resource<Pick<Stack, 'spec' | 'status'>>, namespace, name)
  const visible = await sources.visibility.of('runs', () => [namespace])
  const mayListRuns = visible.all || visible.namespaces.has(namespace)
  const row = projections.tables.stacks.get(`${namespace}/${name}`)
  const facts: StackFacts = { ...(row && { row }), object, runs: mayListRuns ? projections.runsOf(namespace, name) : [] }
  return { facts }
}

async function poolContent({ name }: { readonly name: string }, sources: ViewSources): Promise<ViewContent> {
  const object = await read(await sources.client(), workerPoolResource, undefined, name)
  const row = sources.projections.tables.pools.get(name)
  const facts: PoolFacts = { ...(row && { row }), object }
  return { facts }
}

async function runContent(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  sources: ViewSources,
): Promise<ViewContent> {
  const { projections } = sources
  const object = await read(await sources.client(), runResource, namespace, name)
  const visible = await sources.visibility.of('runs', () => [namespace])
  const mayListRuns = visible.all || visible.namespaces.has(namespace)
  const row = projections.tables.runs.get(`${namespace}/${name}`)
  const runs = row && mayListRuns ? projections.runsOf(namespace, row.stack) : []
  const facts: RunFacts = { ...(row && { row }), object, hasWorker: hasWorker(row, projections.tables), ...relatedRuns(row, runs) }
  return { facts }
}

/** With the rights of the user, at every change: the API server decides. */
async function read<Body>(
  client: Client,
  resource: Resource<Body>,
  namespace: string | undefined,
  name: string,
): Promise<KubeObject<Body>> {
  const object = await client.resource(resource).get(name, namespace === undefined ? {} : { namespace })
  const { managedFields: _, ...metadata } = object.metadata as KubeObject<Body>['metadata'] & { managedFields?: unknown }
  return { ...object, metadata }
}
