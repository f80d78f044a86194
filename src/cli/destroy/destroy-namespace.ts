import { type Stack, stackResource } from '../../api/index.ts'
import { dependencyNames } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { CliError, formatError } from '../cli-error.ts'
import { countOf } from '../count-of.ts'
import { confirm, note, print } from '../terminal.ts'
import { dependentsBlocker, expectNoBlockers } from './blockers.ts'
import { executeDestruction } from './execute-destruction.ts'
import { type PlannedDestruction, planDestructions, showDestruction } from './plan-destruction.ts'

/**
 * Destroys all Stacks of a namespace: shows all plans, asks once, and destroys dependents first. If one fails, those that it depends on are not
 * deleted. A Stack that is created meanwhile is not destroyed, because its plan was not shown.
 * @throws {CliError} if a Stack remains.
 */
export async function destroyNamespace(
  client: Client,
  namespace: string,
  options: { readonly timeoutMs: number; readonly yes?: boolean },
): Promise<void> {
  const { timeoutMs } = options
  const listOthers = async (): Promise<Stack[]> => (await client.resource(stackResource).listAll({ namespace })).items
  const stacks = await listOthers()
  if (stacks.length === 0) return print(`namespace/${namespace} has no Stacks`)
  const planOptions = { what: `namespace/${namespace}`, timeoutMs, useCurrentSource: false, listOthers, includesOthers: true }
  const planned = await planDestructions(client, stacks, planOptions)
  const waves = destructionWaves(stacks)
  for (const { metadata } of waves.flat()) {
    note(`stack/${metadata.name}`)
    await showDestruction(client, planned.find(one => one.stack.metadata.uid === metadata.uid)!)
  }
  const count = planned.reduce((sum, { plan }) => sum + (plan?.destroy ?? 0), 0)
  const order = waves.map(wave => wave.map(({ metadata }) => metadata.name).join(', ')).join('; then ')
  note(`order: ${order}`)
  await confirm(
    `destroy ${countOf(count, 'resource')} of ${countOf(stacks.length, 'Stack')} in namespace ${namespace}, and delete ${stacks.length === 1 ? 'the Stack' : 'the Stacks'}?`,
    options.yes === undefined ? {} : { yes: options.yes },
  )
  let done = 0
  const together = new Set(stacks.map(({ metadata }) => metadata.uid))
  for (const wave of waves) {
    // A Stack that was created since would keep the deletion waiting.
    const others = await listOthers()
    const blockers = wave.flatMap(stack =>
      dependentsBlocker(stack, { others, together }).map(({ text }) => ({ text: `stack/${stack.metadata.name}: ${text}` })),
    )
    expectNoBlockers(`namespace/${namespace}`, blockers)
    const errors: unknown[] = []
    await Promise.all(
      wave.map(async ({ metadata: { name, uid } }) => {
        const one: PlannedDestruction = planned.find(({ stack }) => stack.metadata.uid === uid)!
        try {
          // Also with --no-wait: a Stack is deleted when those that depend on it are gone.
          await executeDestruction(client, one, { wait: true, timeoutMs })
          print(`stack/${name} destroyed (${++done} of ${stacks.length})`)
        } catch (error) {
          errors.push(error)
          const { message, hint } = formatError(error)
          note(`oarlock: ${message}`)
          if (hint) note(`  hint: ${hint}`)
        }
      }),
    )
    if (errors.length > 0) throw notAllDestroyed(namespace, stacks.length - done, errors)
  }
  const created = (await listOthers()).filter(({ metadata }) => !together.has(metadata.uid)).map(({ metadata }) => metadata.name)
  if (created.length > 0) {
    const which = created.length === 1 ? 'a Stack that was created since remains' : 'Stacks that were created since remain'
    throw new CliError(`${which} in namespace/${namespace}: ${created.join(', ')}`, { hint: continueHint(namespace) })
  }
}

const continueHint = (namespace: string) => `"oarlock destroy --all -n ${namespace}" continues`

function notAllDestroyed(namespace: string, remaining: number, errors: readonly unknown[]): CliError {
  const { exitCode } = formatError(errors[0])
  return new CliError(`${remaining} ${remaining === 1 ? 'Stack remains' : 'Stacks remain'} in namespace/${namespace}`, {
    exitCode,
    hint: continueHint(namespace),
  })
}

/**
 * The Stacks in the order of their destruction: each wave depends on later ones only. The Stacks of a cycle, and what they depend on, are the last wave, in
 * which the controller deletes a Stack after its dependents.
 */
export function destructionWaves(stacks: readonly Stack[]): Stack[][] {
  const waves: Stack[][] = []
  let remaining = [...stacks].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  while (remaining.length > 0) {
    const needed = new Set(remaining.flatMap(({ spec, metadata }) => dependencyNames(spec).filter(name => name !== metadata.name)))
    const free = remaining.filter(({ metadata }) => !needed.has(metadata.name))
    const wave = free.length > 0 ? free : remaining
    waves.push(wave)
    remaining = remaining.filter(stack => !wave.includes(stack))
  }
  return waves
}
