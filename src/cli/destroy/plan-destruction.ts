import { annotations, nothingToDestroy, phaseOf, type Run, type Stack, stackResource } from '../../api/index.ts'
import { readHasResources } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isConditionTrue } from '../../kubernetes/object/index.ts'
import { type ShownPlan, showPlan } from '../approve-plan.ts'
import { runRequest } from '../request-run.ts'
import { note } from '../terminal.ts'
import { type Blocker, expectNoBlockers, findBlockers } from './blockers.ts'

export type PlanOptions = {
  /** What is destroyed, for messages: `stack/app` or `namespace/shop`. */
  readonly what: string
  readonly timeoutMs: number
  readonly useCurrentSource: boolean
  /** The Stacks of the namespace. */
  readonly listOthers: () => Promise<readonly Stack[]>
  /** Whether all of them are destroyed together. */
  readonly includesOthers: boolean
}

/** A Stack whose destruction can begin. */
export type PlannedDestruction = {
  readonly stack: Stack
  /** What it destroys; undefined if nothing is to be destroyed, or the Stack is being deleted and destroys what was confirmed before. */
  readonly plan: ShownPlan | undefined
  /** The digest of the plan, also of one that destroys nothing, or `none`: nothing else is destroyed then. Undefined if the Stack is being deleted without a plan. */
  readonly confirmed?: string
  /** True for a Stack that is being deleted, and is to be destroyed with its present source from now on: what it destroys is planned again where that is required. */
  readonly changesSource?: boolean
}

/**
 * Plans the destruction of Stacks. What is known to block it is reported before a Run is requested, and again after the plans, which may take minutes; then
 * together with the plans that failed.
 * @throws {CliError} with everything that blocks the destruction.
 */
export async function planDestructions(client: Client, stacks: readonly Stack[], options: PlanOptions): Promise<PlannedDestruction[]> {
  expectNoBlockers(options.what, await knownBlockers(client, stacks, options))
  const planned = await Promise.all(stacks.map(stack => planDestruction(client, stack, options)))
  const known = await knownBlockers(client, await readAgain(client, stacks), options)
  const failed = planned.flatMap(({ stack, problem }) => (problem === undefined ? [] : blockersOf(stack, [{ text: problem }], options)))
  expectNoBlockers(options.what, [...known, ...failed])
  return planned
}

async function knownBlockers(client: Client, stacks: readonly Stack[], options: PlanOptions): Promise<Blocker[]> {
  const others = await options.listOthers()
  const together = new Set(stacks.map(({ metadata }) => metadata.uid))
  const found = await Promise.all(
    stacks.map(async stack => {
      if (stack.metadata.deletionTimestamp) return []
      const blockers = await findBlockers(client, stack, { others, together, isPlanned: await readHasResources(client, stack) })
      return blockersOf(stack, blockers, options)
    }),
  )
  return found.flat()
}

/** Where several Stacks are destroyed, with the Stack. */
const blockersOf = ({ metadata }: Stack, blockers: readonly Blocker[], { includesOthers }: PlanOptions): readonly Blocker[] =>
  includesOthers ? blockers.map(({ text, ...more }) => ({ ...more, text: `stack/${metadata.name}: ${text}` })) : blockers

/** The Stacks that still exist. */
async function readAgain(client: Client, stacks: readonly Stack[]): Promise<Stack[]> {
  const resource = client.resource(stackResource)
  const found = await Promise.all(stacks.map(({ metadata }) => resource.getOrUndefined(metadata.name, { namespace: metadata.namespace })))
  return found.filter((stack, index): stack is Stack => stack?.metadata.uid === stacks[index]?.metadata.uid)
}

/** The `problem` is why the plan failed. */
async function planDestruction(client: Client, stack: Stack, options: PlanOptions): Promise<PlannedDestruction & { problem?: string }> {
  const { status, metadata } = stack
  if (metadata.deletionTimestamp) {
    if (options.useCurrentSource && !usesCurrentSource(stack)) return { stack, plan: undefined, changesSource: true }
    const plan = isConditionTrue(status?.conditions, 'AwaitingApproval') ? status?.plan : undefined
    if (!plan) note(`stack/${metadata.name} is being deleted already`)
    return { stack, plan, ...(plan && { confirmed: plan.digest }) }
  }
  // Its first Apply may begin before the deletion: what that creates was not shown.
  if (!(await readHasResources(client, stack))) return { stack, plan: undefined, confirmed: nothingToDestroy }
  const run = await requestPlan(client, stack, options)
  const { plan, changed, reason, message } = run.status ?? {}
  if (phaseOf(run) !== 'Succeeded') {
    const why = [reason, message].filter(Boolean).join(': ')
    return { stack, plan: undefined, problem: `run/${run.metadata.name} cannot plan its destruction: ${why}` }
  }
  const shown = plan && changed ? { ...plan, runName: run.metadata.name } : undefined
  return { stack, plan: shown, confirmed: plan?.digest ?? nothingToDestroy }
}

async function requestPlan(client: Client, stack: Stack, { useCurrentSource, timeoutMs }: PlanOptions): Promise<Run> {
  if (useCurrentSource) await setSource(client, stack, 'Current')
  else if (usesCurrentSource(stack))
    note(`stack/${stack.metadata.name} is destroyed with its present source (annotation ${annotations.destroySource})`)
  return await runRequest(client, stack, { type: 'plan-destroy' }, timeoutMs)
}

const usesCurrentSource = ({ metadata }: Stack): boolean => metadata.annotations?.[annotations.destroySource] === 'Current'

/** Which source destroys the Stack: `Current`, or null for the one that was applied last. */
export async function setSource(client: Client, { metadata }: Stack, source: string | null): Promise<void> {
  const { name, namespace } = metadata
  const patch = { metadata: { annotations: { [annotations.destroySource]: source } } }
  await client.resource(stackResource).patch(name, patch as object, { type: 'merge', namespace })
}

/** Shows what is destroyed. @throws {CliError} if it cannot be shown in full (invariant 11). */
export async function showDestruction(client: Client, { stack, plan }: PlannedDestruction): Promise<void> {
  const { name, namespace, deletionTimestamp } = stack.metadata
  if (plan) {
    const remedy = `"oarlock delete stack ${name} -n ${namespace}" destroys without a plan where no approval is required`
    return await showPlan(client, stack, plan, { what: 'destroyed', remedy })
  }
  if (!deletionTimestamp) note(`stack/${name}: nothing to destroy`)
}
