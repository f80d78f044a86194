import { runResource } from '../../api/index.ts'
import { discovery } from '../../app/index.ts'
import type { QueuedRun, QueueReport } from '../../controllers/dispatch/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { formatDuration, isReason } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError, rightHint } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { note, print } from '../terminal.ts'

export type QueueOptions = AccessOptions & { pool?: string; limit?: number; output?: 'json' | 'yaml' | 'wide' }

/** `oarlock queue`: queued Runs with position and reason, and tenants with their Runs and usage. */
export async function queue(options: QueueOptions): Promise<void> {
  await withClient(options, async client => {
    const { pool, namespace, limit, output } = options
    const query = { pool, namespace, limit: limit === undefined ? undefined : String(limit) }
    let report: QueueReport
    try {
      const response = await client.request({ method: 'GET', path: '/queue', query })
      report = (await response.json()) as QueueReport
    } catch (error) {
      if (!isReason(error, 'Forbidden')) throw error
      const right = rightHint('list', runResource.plural, namespace)
      const hint =
        namespace === undefined
          ? `list the queue of a namespace that you may read: oarlock queue -n NAMESPACE; for all namespaces, ${right}`
          : right
      throw new CliError((error as Error).message, { exitCode: exitCodes.rejected, hint, cause: error })
    }
    const partition = namespace === undefined ? await partitionOfQueue(client) : undefined
    if (partition !== undefined)
      note(`the queue of partition ${partition}; "oarlock queue -n NAMESPACE" shows that of the partition of a namespace`)
    if (output === 'json' || output === 'yaml') return print(await serialize(report, output))
    for (const line of queueLines(report, output === 'wide')) print(line)
    if (report.runs.length === 0) note('no queued Runs')
    if (report.truncated) note('more Runs are queued; --limit lists up to 5000 of each pool')
  })
}

/** Each partition has a queue of its own: the one whose controllers have published the address, or undefined where there are no partitions. */
async function partitionOfQueue(client: Client): Promise<string | undefined> {
  const { findEntry, readPartitionOf } = await discovery()
  const entry = await findEntry(client, 'queue').catch(error => (isReason(error, 'Forbidden') ? undefined : Promise.reject(error)))
  return entry && (await readPartitionOf(client, entry.metadata.resourceVersion))?.name
}

/** Formats the report. Pure. */
function queueLines(report: QueueReport, wide: boolean): string[] {
  const lines: string[] = []
  if (report.runs.length > 0) {
    const headers = [
      'POSITION',
      'NAMESPACE',
      'RUN',
      'CLASS',
      'WAITED',
      'REASON',
      ...(wide ? ['TENANT', 'TYPE', 'STACK', 'PRIORITY', 'MESSAGE'] : []),
    ]
    const row = (run: QueuedRun) => [
      run.position === null ? '-' : String(run.position),
      run.namespace,
      run.name,
      run.priorityClass,
      formatDuration(run.waitedSeconds * 1_000),
      run.reason,
      ...(wide ? [run.tenant, run.type, run.stack, String(run.priority), run.message] : []),
    ]
    for (const [pool, runs] of Map.groupBy(report.runs, run => run.pool)) {
      const counts = report.pools.find(({ name }) => name === pool)
      if (lines.length > 0) lines.push('')
      lines.push(`pool ${pool}: ${counts?.queued ?? runs.length} queued, ${counts?.running ?? 0} running`)
      lines.push(...renderTable(headers, runs.map(row)))
    }
    lines.push('')
  }
  const tenants = report.tenants.map(tenant => [
    tenant.name,
    String(tenant.weight),
    String(tenant.queued),
    `${tenant.running}${tenant.maxRunning === null ? '' : `/${tenant.maxRunning}`}`,
    formatDuration(tenant.usageSeconds * 1_000),
  ])
  if (tenants.length > 0) lines.push(...renderTable(['TENANT', 'WEIGHT', 'QUEUED', 'RUNNING', 'USED'], tenants))
  return lines
}
