import { annotations, oarlockCommand, phaseOf, type Run, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { planText } from '../request-run.ts'
import { getStack, runsOf } from '../targets.ts'
import { confirm, note, print } from '../terminal.ts'

type Options = AccessOptions & { all?: boolean; force?: boolean; yes?: boolean }

/** `oarlock restore accept STACK...`: Runs of Stacks from a backup start again. */
export async function accept(targets: readonly string[], options: Options): Promise<void> {
  const isAll = options.all === true || options.allNamespaces === true
  if (isAll === targets.length > 0) throw usageError('name Stacks, or pass --all or -A', 'oarlock restore accept --help')
  await withClient(options, async client => {
    const found = isAll
      ? await stacksIn(client, options)
      : await Promise.all(targets.map(each => getStack(client, each, namespaceOf(client, options))))
    const waiting = found.filter(({ status }) => status?.restored !== undefined)
    const others = found.filter(stack => !waiting.includes(stack))
    for (const { metadata } of isAll ? [] : others) note(`stack/${metadata.name} does not wait for a review: nothing to accept`)
    if (waiting.length === 0) return note('no Stack waits for the review of a restore')
    const reviews = await Promise.all(waiting.map(async stack => ({ stack, plan: await planSinceRestore(client, stack) })))
    const unplanned = reviews.filter(({ plan }) => plan === undefined).map(({ stack }) => stack)
    if (unplanned.length > 0 && !options.force) throw notPlanned(unplanned)
    for (const { stack, plan } of reviews) note(`${nameOf(stack)}: ${describe(plan)}`)
    await confirm(`continue with ${reviews.length === 1 ? 'this Stack' : `these ${reviews.length} Stacks`}?`, options)
    for (const { stack } of reviews) {
      const { name, namespace } = stack.metadata
      const accepted = { [annotations.acceptedRestore]: stack.status?.restored?.at }
      await client.resource(stackResource).patch(name, { metadata: { annotations: accepted } }, { type: 'merge', namespace })
      print(`${nameOf(stack)} accepted`)
    }
  })
}

async function stacksIn(client: Client, options: Options): Promise<Stack[]> {
  const namespace = options.allNamespaces ? undefined : namespaceOf(client, options)
  return (await client.resource(stackResource).listAll({ namespace })).items
}

/** The newest Plan that has succeeded since the restore. */
async function planSinceRestore(client: Client, stack: Stack): Promise<Run | undefined> {
  const restoredAtMs = Date.parse(stack.status?.restored?.at ?? '')
  return (await runsOf(client, stack)).find(
    run => run.spec.type === 'Plan' && phaseOf(run) === 'Succeeded' && Date.parse(run.metadata.creationTimestamp) >= restoredAtMs,
  )
}

function describe(run: Run | undefined): string {
  if (!run) return 'not planned since the restore'
  const { plan } = run.status ?? {}
  return `plan of run/${run.metadata.name}: ${plan ? planText(plan, run.status?.changed) : 'no changes are known'}`
}

function notPlanned(stacks: readonly Stack[]): CliError {
  const listed = stacks.slice(0, 10).map(nameOf).join(', ')
  const [first] = stacks as [Stack]
  return new CliError(`not planned since the restore: ${listed}${stacks.length > 10 ? ` and ${stacks.length - 10} more` : ''}`, {
    exitCode: exitCodes.rejected,
    hint: `show what differs first, for example with "${oarlockCommand('plan', first.metadata)}", or accept without it with --force`,
  })
}

const nameOf = ({ metadata }: Stack) => `stack/${metadata.name}${metadata.namespace === undefined ? '' : ` -n ${metadata.namespace}`}`
