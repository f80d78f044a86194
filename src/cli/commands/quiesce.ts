import { setTimeout as sleep } from 'node:timers/promises'
import { isEnded, phaseOf, type Run, runResource, systemNamespace, workerResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { describeResource, formatDuration, isReason, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { note, print } from '../terminal.ts'

export type QuiesceOptions = AccessOptions & { timeout: string }

/** Of the chart. */
const deploymentName = 'oarlock-controllers'
const controllerPods = 'app.kubernetes.io/component=controller'
const pollMs = 1_000
/** So many Runs are named. */
const maxNamed = 10

const deploymentResource = describeResource<{ spec?: { replicas?: number } }>({
  ...{ group: 'apps', version: 'v1', kind: 'Deployment', plural: 'deployments', scope: 'Namespaced' },
})
const podResource = describeResource<object>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })

/** `oarlock quiesce`: without controllers no Run is assigned, so that those that are active are the last ones. */
export async function quiesce(options: QuiesceOptions): Promise<void> {
  await withClient(options, async client => {
    const timeoutMs = parseDuration(options.timeout)
    const endMs = performance.now() + timeoutMs
    const replicas = await scaleControllers(client, 0)
    for (let printed = ''; ; ) {
      const remaining = await whatRemains(client)
      if (remaining === undefined) break
      if (performance.now() >= endMs) {
        if (replicas !== undefined) await scaleControllers(client, replicas)
        const restarted = replicas === undefined ? '' : '; the controllers run again'
        throw new CliError(`${remaining} after ${formatDuration(timeoutMs)}${restarted}`, {
          exitCode: exitCodes.timedOut,
          hint: 'wait until they have ended or cancel them ("oarlock cancel"), then repeat',
        })
      }
      if (remaining !== printed) note(remaining)
      printed = remaining
      await sleep(pollMs)
    }
    await deleteWorkerPods(client)
    print(`no Run is active${replicas === undefined ? '' : `, and Deployment ${deploymentName} has 0 replicas`}`)
  })
}

/** @returns how many replicas there were; undefined without the Deployment of the chart. */
async function scaleControllers(client: Client, replicas: number): Promise<number | undefined> {
  const deployments = client.resource(deploymentResource)
  const where = { namespace: systemNamespace }
  const found = await deployments.getOrUndefined(deploymentName, where)
  if (!found) return undefined
  await deployments.patch(deploymentName, { spec: { replicas } }, { type: 'merge', ...where })
  return found.spec?.replicas ?? 1
}

async function whatRemains(client: Client): Promise<string | undefined> {
  const { items: pods } = await client.resource(podResource).listAll({ namespace: systemNamespace, labelSelector: controllerPods })
  if (pods.length > 0) return `${pods.length === 1 ? 'a controller is' : `${pods.length} controllers are`} still stopping`
  const active = (await listRuns(client)).filter(run => run.spec.workerName !== undefined && !isEnded(run))
  if (active.length === 0) return undefined
  const named = active.slice(0, maxNamed).map(run => `${run.metadata.namespace}/${run.metadata.name} (${phaseOf(run)})`)
  const others = active.length > maxNamed ? ` and ${active.length - maxNamed} more` : ''
  return `${active.length === 1 ? '1 Run is' : `${active.length} Runs are`} active: ${named.join(', ')}${others}`
}

const listRuns = async (client: Client): Promise<readonly Run[]> =>
  await orNone(async () => (await client.resource(runResource).listAll()).items)

/** Those that no controller drains any more: the garbage collector deletes their Pods. Workers that a user has started remain. */
async function deleteWorkerPods(client: Client): Promise<void> {
  const workers = client.resource(workerResource)
  for (const { metadata, spec } of await orNone(async () => (await workers.listAll()).items)) {
    if (!spec.pod) continue
    await workers.delete(metadata.name, { preconditions: { uid: metadata.uid } }).catch((error: unknown) => {
      if (!isReason(error, 'NotFound', 'Conflict')) throw error
    })
  }
}

/** The CRDs may be deleted already. */
async function orNone<T>(list: () => Promise<T[]>): Promise<T[]> {
  try {
    return await list()
  } catch (error) {
    if (isReason(error, 'NotFound')) return []
    throw error
  }
}
