/** What a new Run shows on both servers. */
import { deepEqual, equal } from 'node:assert/strict'
import { oarlockResources, type RunSpec, runResource } from '../../src/api/index.ts'
import { type Client, installKinds } from '../../src/kubernetes/client/index.ts'

const spec = {
  ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'default', priority: 0 },
  stackRef: { name: 'app', uid: 'u', generation: 1 },
  stack: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } } },
} as const satisfies RunSpec

/** A Run has phase Queued before anyone has written its status, for `kubectl get runs` and field selectors; its creator does not own it. */
export async function checkPhaseOfNewRun(client: Client): Promise<void> {
  await installKinds(client, oarlockResources)
  const runs = client.resource(runResource, { managedFields: true })
  const created = await runs.create({ metadata: { name: 'app-1', namespace: 'default' }, spec })
  deepEqual(created.status, { phase: 'Queued' })
  deepEqual((await runs.get('app-1', { namespace: 'default' })).metadata.resourceVersion, created.metadata.resourceVersion)
  const queued = await runs.list({ namespace: 'default', fieldSelector: 'status.phase=Queued' })
  deepEqual(
    queued.items.map(({ metadata }) => metadata.name),
    ['app-1'],
  )
  const response = await client.request({
    method: 'GET',
    path: '/apis/oarlock.dev/v1alpha1/namespaces/default/runs',
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  })
  const table = (await response.json()) as { columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] }
  equal(table.rows[0]!.cells[table.columnDefinitions.findIndex(({ name }) => name === 'Phase')], 'Queued')

  const written = await runs.patchStatus('app-1', { status: { phase: 'Applying' } }, { namespace: 'default' })
  const owners = written.metadata.managedFields?.flatMap(({ subresource, fieldsV1 }) =>
    'f:status' in (fieldsV1 as object) ? [subresource] : [],
  )
  deepEqual(owners, ['status'])
}
