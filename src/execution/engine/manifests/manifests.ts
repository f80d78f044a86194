import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Client, createClient } from '../../../kubernetes/client/index.ts'
import { isReason, type KubeObject, parseDuration } from '../../../kubernetes/object/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, PlanOptions, PlanResult } from '../engine.ts'
import { EngineError, interruptedError } from '../engine-error.ts'
import { jsonDigest } from '../json-digest.ts'
import { applyRank } from './apply-order.ts'
import { changedFields, desiredFields } from './changed-fields.ts'
import { describeFailure } from './describe-failure.ts'
import { formatEntry, type InventoryEntry, inventoryEntry, inventoryKey, parseInventory, serializeInventory } from './inventory.ts'
import { computeKStatus } from './kstatus.ts'
import { readManifestFiles } from './manifest-files.ts'
import { parseManifests } from './read-manifests.ts'
import { discoverResource, ownerAnnotation, type ResolvedManifest, resolveManifests } from './resolve-manifests.ts'
import { waitForCurrent } from './wait-for-current.ts'

const fieldManager = 'oarlock'
const defaultWaitTimeout = '5m'
const atOnce = 8

/**
 * Kubernetes manifests: server-side apply with field manager `oarlock`, an inventory of what was applied, pruning, and waiting by kstatus.
 * No templating: the files are applied as they are. What others manage is not taken from them, except on objects that are in the inventory.
 */
export function createManifestsEngine(): Engine {
  return new ManifestsEngine()
}

type Change = { action: 'add' | 'change' | 'none'; key: string; line: string; before?: unknown; after: unknown }

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
      const targets = await this.#targets(context, client)
      return await planApply(context, client, targets, inventory)
    })
    const file = join(context.scratch, `${intent}.plan.json`)
    await writeFile(file, `${JSON.stringify({ engine: 'manifests', digest: result.digest })}\n`, { mode: 0o600 })
    for (const line of result.summary) context.log(line)
    context.log(`plan: ${result.add} to add, ${result.change} to change, ${result.destroy} to destroy`)
    return { intent, ...result, hasChanges: intent === 'refresh' ? false : result.hasChanges, file }
  }

  /** The source of a Run is frozen, so planning again gives the same digest unless the cluster has moved on. */
  async readPlan(context: EngineContext, file: string): Promise<PlanResult> {
    await readFile(file)
    return await this.plan(context)
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    return await withClient(context, async client => {
      if (plan.intent === 'destroy') return await destroyAll(context, client)
      const targets = await this.#targets(context, client)
      return await applyAll(context, client, targets, plan)
    })
  }

  async #targets(context: EngineContext, client: Client): Promise<ResolvedManifest[]> {
    const manifests = parseManifests(await readManifestFiles(context.directory))
    const namespace = context.spec.manifests?.namespace ?? context.stack.namespace
    return await resolveManifests(client, manifests, namespace, ownerOf(context))
  }
}

async function planApply(
  context: EngineContext,
  client: Client,
  targets: readonly ResolvedManifest[],
  inventory: readonly InventoryEntry[],
): Promise<Omit<PlanResult, 'intent'>> {
  const entries = new Map(inventory.map(entry => [inventoryKey(entry), entry]))
  const changes = await inParallel(targets, target => planOne(context, client, target, targets, entries.get(keyOf(target))))
  const pruned = toPrune(context, targets, inventory)
  const adds = changes.filter(({ action }) => action === 'add')
  const updates = changes.filter(({ action }) => action === 'change')
  const summary = [...adds, ...updates].map(({ line }) => line)
  for (const entry of pruned) summary.push(`- ${formatEntry(entry)}`)
  const digest = jsonDigest({ changes: [...adds, ...updates].map(({ line: _, ...change }) => change), pruned: pruned.map(inventoryKey) })
  const hasChanges = adds.length + updates.length + pruned.length > 0
  return { digest, add: adds.length, change: updates.length, destroy: pruned.length, hasChanges, summary }
}

async function planOne(
  context: EngineContext,
  client: Client,
  target: ResolvedManifest,
  all: readonly ResolvedManifest[],
  entry: InventoryEntry | undefined,
): Promise<Change> {
  const { object, resource, location, pendingCrd } = target
  const { name, namespace } = object.metadata as { name: string; namespace?: string }
  const key = keyOf(target)
  const text = formatEntry({ kind: object.kind, namespace, name })
  const added: Change = { action: 'add', key, line: `+ ${text}`, after: object }
  if (pendingCrd) return added
  const handle = client.resource(resource)
  try {
    const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
    if (live === undefined) {
      // A dry run inside a namespace that this source makes would only say that it does not exist yet.
      const isInNewNamespace = all.some(({ object: other }) => other.kind === 'Namespace' && other.metadata.name === namespace)
      if (!isInNewNamespace) await handle.apply(object, { dryRun: true, fieldManager, signal: context.signal })
      return added
    }
    const isOurs = checkOwner(context, target, live, entry)
    const after = await handle.apply(object, { dryRun: true, force: isOurs, fieldManager, signal: context.signal })
    const [before, next] = [desiredFields(live), desiredFields(after)]
    const fields = changedFields(before, next)
    if (fields.length === 0 && entry !== undefined) return { action: 'none', key, line: '', after: next }
    const what = fields.length === 0 ? 'now managed by this Stack' : fields.slice(0, 10).join(', ')
    return { action: 'change', key, line: `~ ${text} (${what})`, before, after: next }
  } catch (error) {
    throw failure(context, error, location, 'PlanFailed')
  }
}

async function applyAll(
  context: EngineContext,
  client: Client,
  targets: readonly ResolvedManifest[],
  plan: PlanResult,
): Promise<ApplyResult> {
  const { signal, log } = context
  const inventory = parseInventory(await context.inventory.read())
  const entries = new Map(inventory.map(entry => [inventoryKey(entry), entry]))
  const pruned = toPrune(context, targets, inventory)
  const timeoutMs = waitTimeoutMs(context)
  const applied: { target: ResolvedManifest; object: KubeObject }[] = []
  const total = targets.length + pruned.length

  if (plan.hasChanges) {
    // Written before anything is made, so that nothing a killed Run made is forgotten. The uid comes afterwards.
    const planned = targets.filter(target => !entries.has(keyOf(target))).map(plannedEntry)
    if (planned.length > 0) await context.inventory.write(serializeInventory([...inventory, ...planned]))
    for (const entry of planned) entries.set(inventoryKey(entry), entry)
  }
  try {
    for (const group of byRank(targets)) {
      await inParallel(group, async target => {
        if (!plan.hasChanges) return
        context.progress({ done: applied.length, total, current: target.location })
        const object = await applyOne(context, client, target, entries.get(keyOf(target)))
        applied.push({ target, object })
        log(`applied ${formatEntry({ kind: object.kind, ...object.metadata })}`)
      })
      // Objects of a new kind are refused until the server serves it.
      const crds = group.filter(({ object }) => object.kind === 'CustomResourceDefinition')
      if (crds.length > 0) await waitForTargets(context, client, crds, timeoutMs)
    }
  } finally {
    for (const { target, object } of applied) entries.set(keyOf(target), inventoryEntry(object))
    if (applied.length > 0) await context.inventory.write(serializeInventory([...entries.values()]))
  }
  if (pruned.length > 0) {
    for (const entry of pruned) log(`deleting ${formatEntry(entry)}, which the source no longer names`)
    await deleteEntries(context, client, pruned, timeoutMs)
    for (const entry of pruned) entries.delete(inventoryKey(entry))
    await context.inventory.write(serializeInventory([...entries.values()]))
  }
  if (context.spec.manifests?.wait !== false) {
    await waitForTargets(context, client, targets, timeoutMs, pruned.length)
  }
  if (signal.aborted) throw interruptedError('manifests', 'apply')
  context.progress({ done: total, total })
  return { outputs: {}, resources: entries.size, changed: plan.hasChanges }
}

async function applyOne(
  context: EngineContext,
  client: Client,
  target: ResolvedManifest,
  entry: InventoryEntry | undefined,
): Promise<KubeObject> {
  const { object, location } = target
  const { name, namespace } = object.metadata as { name: string; namespace?: string }
  try {
    // Asked again: a kind of this source is served only now.
    const handle = client.resource((await discoverResource(client, object.apiVersion, object.kind)) ?? target.resource)
    const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
    const isOurs = live !== undefined && checkOwner(context, target, live, entry)
    return await handle.apply(object, { force: isOurs, fieldManager, signal: context.signal })
  } catch (error) {
    throw failure(context, error, location, 'ApplyFailed')
  }
}

/**
 * True when the object is in our inventory, and not one that somebody deleted and made anew: then we may force our fields on it.
 * @throws {EngineError} when another Stack has it.
 */
function checkOwner(context: EngineContext, { location }: ResolvedManifest, live: KubeObject, entry: InventoryEntry | undefined): boolean {
  const owner = live.metadata.annotations?.[ownerAnnotation]
  if (owner !== undefined && owner !== ownerOf(context)) {
    throw new EngineError(
      'PlanFailed',
      `${location}: belongs to Stack ${owner}; remove it there first, or remove its annotation ${ownerAnnotation} to take it over`,
      { retryable: true },
    )
  }
  if (entry === undefined) return false
  return entry.uid === '' ? owner !== undefined : entry.uid === live.metadata.uid
}

async function waitForTargets(
  context: EngineContext,
  client: Client,
  targets: readonly ResolvedManifest[],
  timeoutMs: number,
  alreadyDone = 0,
): Promise<void> {
  const total = targets.length + alreadyDone
  await waitForCurrent(
    targets.map(({ object, resource, location }) => {
      const { name, namespace } = object.metadata as { name: string; namespace?: string }
      return {
        text: formatEntry({ kind: object.kind, namespace, name }),
        poll: async () => {
          try {
            const live = await client.resource(resource).getOrUndefined(name, { namespace, signal: context.signal })
            return live ? computeKStatus(live) : { status: 'InProgress', message: 'does not exist' }
          } catch (error) {
            throw failure(context, error, location, 'ApplyFailed')
          }
        },
      }
    }),
    {
      timeoutMs,
      signal: context.signal,
      onProgress: (current, waitsFor) =>
        context.progress({ done: current + alreadyDone, total, ...(waitsFor !== undefined && { current: `waiting for ${waitsFor}` }) }),
    },
  )
}

function planDestroy(inventory: readonly InventoryEntry[]): Omit<PlanResult, 'intent'> {
  const summary = inventory.map(entry => `- ${formatEntry(entry)}`)
  const digest = jsonDigest({ destroy: inventory })
  return { digest, add: 0, change: 0, destroy: inventory.length, hasChanges: inventory.length > 0, summary }
}

/** In the reverse of the order of making: first what uses others, then CRDs, then Namespaces; each stage waits until the last is gone. */
async function destroyAll(context: EngineContext, client: Client): Promise<ApplyResult> {
  const inventory = parseInventory(await context.inventory.read())
  const stages = byRank(inventory.map(entry => ({ ...entry, object: entry }))).reverse()
  let left = inventory
  for (const stage of stages) {
    for (const entry of stage) context.log(`deleting ${formatEntry(entry)}`)
    context.progress({ done: inventory.length - left.length, total: inventory.length, current: stage[0] && formatEntry(stage[0]) })
    await deleteEntries(context, client, stage, waitTimeoutMs(context))
    const gone = new Set(stage.map(inventoryKey))
    left = left.filter(entry => !gone.has(inventoryKey(entry)))
    await context.inventory.write(serializeInventory(left))
  }
  context.progress({ done: inventory.length, total: inventory.length })
  return { outputs: {}, resources: 0, changed: inventory.length > 0 }
}

/** Deletes objects that are still the ones we made, and waits until they are gone. */
async function deleteEntries(context: EngineContext, client: Client, entries: readonly InventoryEntry[], timeoutMs: number): Promise<void> {
  const waited = await inParallel(entries, async entry => {
    const text = formatEntry(entry)
    try {
      const resource = await discoverResource(client, entry.apiVersion, entry.kind)
      if (!resource) return undefined // its CRD is gone, and with it every object
      const handle = client.resource(resource)
      const { name, namespace } = entry
      const live = await handle.getOrUndefined(name, { namespace, signal: context.signal })
      if (!live) return undefined
      const owner = live.metadata.annotations?.[ownerAnnotation]
      const isOurs = entry.uid === '' ? owner === ownerOf(context) : entry.uid === live.metadata.uid
      if (!isOurs || (owner !== undefined && owner !== ownerOf(context))) {
        context.log(`left ${text}: somebody else made it anew or took it over`)
        return undefined
      }
      if (entry.kind === 'Namespace' && name === context.stack.namespace && context.kubeconfig === undefined) {
        context.log(`left ${text}: the Stack itself is in it`)
        return undefined
      }
      const { uid } = live.metadata
      await handle.delete(name, { namespace, propagationPolicy: 'Background', preconditions: { uid }, signal: context.signal })
      return {
        text,
        poll: async () => {
          const now = await handle.getOrUndefined(name, { namespace, signal: context.signal })
          if (!now || now.metadata.uid !== uid) return { status: 'Current' as const, message: 'gone' }
          return { status: 'InProgress' as const, message: computeKStatus(now).message }
        },
      }
    } catch (error) {
      if (isReason(error, 'NotFound')) return undefined
      throw failure(context, error, `deleting ${text}`, 'DestroyFailed')
    }
  })
  const open = waited.filter(each => each !== undefined)
  await waitForCurrent(open, { timeoutMs, signal: context.signal })
}

function toPrune({ spec }: EngineContext, targets: readonly ResolvedManifest[], inventory: readonly InventoryEntry[]): InventoryEntry[] {
  if (spec.manifests?.prune === false) return []
  const named = new Set(targets.map(keyOf))
  return inventory.filter(entry => !named.has(inventoryKey(entry))).sort((a, b) => applyRank(b.kind) - applyRank(a.kind))
}

function plannedEntry({ object }: ResolvedManifest): InventoryEntry {
  const { name, namespace } = object.metadata
  return { apiVersion: object.apiVersion, kind: object.kind, ...(namespace && { namespace }), name: name ?? '', uid: '' }
}

function keyOf(target: ResolvedManifest): string {
  return inventoryKey(plannedEntry(target))
}

function ownerOf({ stack }: EngineContext): string {
  return `${stack.namespace}/${stack.name}`
}

function waitTimeoutMs({ spec }: EngineContext): number {
  return parseDuration(spec.manifests?.waitTimeout ?? defaultWaitTimeout)
}

function failure(
  { signal }: EngineContext,
  error: unknown,
  place: string,
  reason: 'PlanFailed' | 'ApplyFailed' | 'DestroyFailed',
): EngineError {
  return signal.aborted ? interruptedError('manifests', reason === 'PlanFailed' ? 'plan' : 'apply') : describeFailure(error, place, reason)
}

/** Neighbours of one rank together. */
function byRank<T extends { object: { kind: string } }>(items: readonly T[]): T[][] {
  const groups = Map.groupBy(items, ({ object }) => applyRank(object.kind))
  return [...groups.entries()].sort(([a], [b]) => a - b).map(([, group]) => group)
}

/** At most {@link atOnce} at a time, results in order. After an error nothing new is started; the first error is thrown when all have ended. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length)
  const errors: unknown[] = []
  let next = 0
  const hand = async (): Promise<void> => {
    while (next < items.length && errors.length === 0) {
      const index = next++
      try {
        results[index] = await work(items[index] as T)
      } catch (error) {
        errors.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, hand))
  if (errors.length > 0) throw errors[0]
  return results
}

/** The cluster to work on: that of the Stack, or the one of its kubeconfig Secret. */
async function withClient<T>(context: EngineContext, work: (client: Client) => Promise<T>): Promise<T> {
  if (context.kubeconfig === undefined) return await work(context.client)
  const path = join(context.scratch, 'kubeconfig')
  await writeFile(path, context.kubeconfig, { mode: 0o600 })
  let client: Client
  try {
    client = await createClient({ kubeconfig: path, fieldManager })
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
