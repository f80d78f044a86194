import { labels, type Run, runResource, type Stack, stackResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { parseTarget } from './find-types.ts'
import { suggest } from './suggest.ts'

const stackWords = ['stack', 'stacks', 'stk']
const runWords = ['run', 'runs']

/** The Stack that `network` or `stack/network` names. @throws {CliError} notFound, with the closest name there is. */
export async function getStack(client: Client, text: string, namespace: string): Promise<Stack> {
  const { type, name } = parseTarget(text, 'stack')
  if (!stackWords.includes(type.toLowerCase()))
    throw usageError(`expected a Stack, got ${JSON.stringify(text)}`, 'write NAME or stack/NAME')
  const found = await client.resource(stackResource).getOrUndefined(name, { namespace })
  if (found) return found
  throw await missing(client, `stack "${name}" not found in namespace ${namespace}`, name)
}

export type StackOrRun = { kind: 'stack'; stack: Stack } | { kind: 'run'; run: Run }

/** What `x`, `stack/x` or `run/x` names; a bare name is a Stack if there is one, else a Run. */
export async function getStackOrRun(client: Client, text: string, namespace: string): Promise<StackOrRun> {
  const { type, name } = parseTarget(text, '')
  const word = type.toLowerCase()
  if (word !== '' && !stackWords.includes(word) && !runWords.includes(word)) {
    throw usageError(`expected a Stack or a Run, got ${JSON.stringify(text)}`, 'write NAME, stack/NAME or run/NAME')
  }
  if (!runWords.includes(word)) {
    const stack = await client.resource(stackResource).getOrUndefined(name, { namespace })
    if (stack) return { kind: 'stack', stack }
  }
  if (!stackWords.includes(word)) {
    const run = await client.resource(runResource).getOrUndefined(name, { namespace })
    if (run) return { kind: 'run', run }
  }
  throw await missing(
    client,
    `${word === '' ? 'no stack or run' : word} "${name}" ${word === '' ? '' : 'not found '}in namespace ${namespace}`,
    name,
  )
}

async function missing(client: Client, message: string, name: string): Promise<CliError> {
  const { items } = await client.resource(stackResource).listAll()
  const elsewhere = items.find(({ metadata }) => metadata.name === name)
  const close = suggest(
    name,
    items.map(({ metadata }) => metadata.name),
  )
  const hint = elsewhere
    ? `it is in namespace ${elsewhere.metadata.namespace}: add -n ${elsewhere.metadata.namespace}`
    : close
      ? `did you mean ${close}?`
      : '"oarlock get stacks -A" lists them'
  return new CliError(message, { exitCode: exitCodes.notFound, hint })
}

/** The Runs of a Stack, newest first. */
export async function runsOf(client: Client, stack: Stack): Promise<Run[]> {
  const { items } = await client
    .resource(runResource)
    .listAll({ namespace: stack.metadata.namespace, labelSelector: `${labels.stack}=${stack.metadata.name}` })
  return items.filter(({ spec }) => spec.stackRef.uid === stack.metadata.uid).sort((a, b) => b.spec.epoch - a.spec.epoch)
}
