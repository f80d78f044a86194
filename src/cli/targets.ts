import { labels, type Run, runResource, type Stack, stackResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason } from '../kubernetes/object/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { parseTarget } from './find-types.ts'
import { suggest } from './suggest.ts'

const stackTypes = ['stack', 'stacks', 'stk']
const runTypes = ['run', 'runs']

/** The Stack called `network` or `stack/network`. @throws {CliError} notFound, with the closest existing name. */
export async function getStack(client: Client, text: string, namespace: string): Promise<Stack> {
  const { type, name } = parseTarget(text, 'stack')
  if (!stackTypes.includes(type.toLowerCase())) throw usageError(`expected a Stack, got ${JSON.stringify(text)}`, 'use NAME or stack/NAME')
  const found = await client.resource(stackResource).getOrUndefined(name, { namespace })
  if (found) return found
  throw await missing(client, 'stack', name, namespace)
}

export type StackOrRun = { kind: 'stack'; stack: Stack } | { kind: 'run'; run: Run }

/** The object called `x`, `stack/x` or `run/x`; a bare name is a Stack if one exists, else a Run. */
export async function getStackOrRun(client: Client, text: string, namespace: string): Promise<StackOrRun> {
  const { type, name } = parseTarget(text, '')
  const typed = type.toLowerCase()
  if (typed !== '' && !stackTypes.includes(typed) && !runTypes.includes(typed)) {
    throw usageError(`expected a Stack or a Run, got ${JSON.stringify(text)}`, 'use NAME, stack/NAME or run/NAME')
  }
  if (!runTypes.includes(typed)) {
    const stack = await client.resource(stackResource).getOrUndefined(name, { namespace })
    if (stack) return { kind: 'stack', stack }
  }
  if (!stackTypes.includes(typed)) {
    const run = await client.resource(runResource).getOrUndefined(name, { namespace })
    if (run) return { kind: 'run', run }
  }
  throw await missing(client, typed || 'stack or run', name, namespace)
}

export const stackNotFound = (client: Client, name: string, namespace: string): Promise<CliError> =>
  missing(client, 'stack', name, namespace)

async function missing(client: Client, typed: string, name: string, namespace: string): Promise<CliError> {
  const isRun = runTypes.includes(typed)
  const message = `${typed} "${name}" not found in namespace ${namespace}`
  const items = isRun ? [] : await visibleStacks(client, namespace)
  const elsewhere = items.find(({ metadata }) => metadata.name === name)
  const close = suggest(
    name,
    items.map(({ metadata }) => metadata.name),
  )
  const hint = elsewhere
    ? `a Stack of this name is in namespace ${elsewhere.metadata.namespace}: add -n ${elsewhere.metadata.namespace}`
    : close
      ? `did you mean ${close}?`
      : isRun
        ? `"oarlock get runs -A" lists all Runs; -n NAMESPACE selects another namespace`
        : '"oarlock get stacks -A" lists all Stacks'
  return new CliError(message, { exitCode: exitCodes.notFound, hint })
}

/** The Stacks that the user can list: all, or those of the namespace, or none. */
export async function visibleStacks(client: Client, namespace: string): Promise<Stack[]> {
  for (const scope of [undefined, namespace]) {
    try {
      return (await client.resource(stackResource).listAll({ namespace: scope })).items
    } catch (error) {
      if (!isReason(error, 'Forbidden')) throw error
    }
  }
  return []
}

/** The Runs of a Stack, newest first. */
export async function runsOf(client: Client, stack: Stack): Promise<Run[]> {
  const { items } = await client
    .resource(runResource)
    .listAll({ namespace: stack.metadata.namespace, labelSelector: `${labels.stack}=${stack.metadata.name}` })
  return items.filter(({ spec }) => spec.stackRef.uid === stack.metadata.uid).sort((a, b) => b.spec.epoch - a.spec.epoch)
}
