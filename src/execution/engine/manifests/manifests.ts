import { join } from 'node:path'
import { type Client, createClient } from '../../../kubernetes/client/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, PlanOptions, PlanResult } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { applyManifests } from './apply-manifests.ts'
import { destroyInventory } from './delete-objects.ts'
import { parseInventory } from './inventory.ts'
import { fieldManager, ownerOf } from './ownership.ts'
import { parseInProcess } from './parse-in-process.ts'
import { planDestroy, planManifests } from './plan-manifests.ts'
import { readManifestFiles } from './read-manifest-files.ts'
import { type ResolvedManifest, resolveManifests } from './resolve-manifests.ts'

/**
 * Kubernetes manifests: server-side apply with field manager `oarlock`, an inventory of the applied objects, pruning, and waiting by kstatus.
 * No templates: the files are applied unchanged. Fields of other managers are not taken over, except on objects in the inventory.
 */
export function createManifestsEngine(): Engine {
  return new ManifestsEngine()
}

class ManifestsEngine implements Engine {
  readonly name = 'manifests'

  async detect(): Promise<Detection> {
    return { found: true, version: 'built in', path: '' }
  }

  async prepare({ variables, log }: EngineContext): Promise<void> {
    const names = Object.keys(variables)
    if (names.length > 0) {
      throw new EngineError(
        'InvalidSpec',
        `spec.variables and spec.variablesFrom are not allowed for engine manifests, which has no templates; got ${names.join(', ')}: remove them, or use engine command`,
        { retryable: false },
      )
    }
    log('manifests: reading the source')
  }

  async plan(context: EngineContext, options: PlanOptions = {}): Promise<PlanResult> {
    const intent = options.destroy ? 'destroy' : options.refreshOnly ? 'refresh' : 'apply'
    const result = await withClient(context, async client => {
      const inventory = parseInventory(await context.inventory.read())
      if (intent === 'destroy') return planDestroy(inventory)
      const manifests = await this.#resolvedManifests(context, client)
      return await planManifests(context, client, manifests, inventory)
    })
    const file = join(context.private, `${intent}.plan.json`)
    await context.files.write(file, `${JSON.stringify({ engine: 'manifests', digest: result.digest })}\n`)
    context.log(`plan: ${result.add} to add, ${result.change} to change, ${result.destroy} to destroy`)
    if (intent === 'refresh') return { intent, ...result, hasChanges: false, diff: undefined, file }
    return { intent, ...result, file }
  }

  /** The source of a Run never changes, so planning again gives the same digest unless the cluster has changed. */
  async readPlan(context: EngineContext, _file: string, options?: PlanOptions): Promise<PlanResult> {
    return await this.plan(context, options)
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    return await withClient(context, async client => {
      if (plan.intent === 'destroy') return await destroyInventory(context, client)
      const manifests = await this.#resolvedManifests(context, client)
      return await applyManifests(context, client, manifests, plan)
    })
  }

  async readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>> {
    return { outputs: {}, resources: parseInventory(await context.inventory.read()).length }
  }

  async #resolvedManifests(context: EngineContext, client: Client): Promise<ResolvedManifest[]> {
    const manifests = await parseInProcess(await readManifestFiles(context), context)
    const namespace = context.spec.manifests?.namespace ?? context.stack.namespace
    return await resolveManifests(client, manifests, namespace, ownerOf(context))
  }
}

/**
 * Calls `work` with a client of the target cluster: that of the Stack, or the one in its kubeconfig Secret. The author of the Stack wrote
 * that Secret, and the client runs in the worker process, outside of any sandbox.
 */
async function withClient<T>(context: EngineContext, work: (client: Client) => Promise<T>): Promise<T> {
  if (context.kubeconfig === undefined) return await work(context.client)
  const path = join(context.private, 'kubeconfig')
  await context.files.write(path, context.kubeconfig)
  let client: Client
  try {
    client = await createClient({ kubeconfig: path, selfContained: true, fieldManager })
  } catch (error) {
    throw new EngineError('InvalidSpec', `spec.manifests.kubeconfigSecretRef: ${(error as Error).message}`, {
      retryable: false,
      cause: error,
    })
  }
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}
