import { isEnded, phaseOf, type Stack, stackMessage, stackResource } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { destroyProblem } from './destroy-problem.ts'
import { runsOf } from './targets.ts'
import { note } from './terminal.ts'
import { waitFor } from './wait-for.ts'

/** Waits until a deleted Stack is destroyed; reports its conditions. `approved` is the Run whose plan the user has approved. @throws {CliError} if it needs a user. */
export async function whenDestroyed(client: Client, stack: Stack, timeoutMs: number, approved?: string): Promise<void> {
  const { name, namespace, uid } = stack.metadata
  // The status from before is not progress.
  let last = lineOf(stack)
  await waitFor(client, stackResource, { namespace, name, timeoutMs, what: `stack/${name} to be destroyed` }, now => {
    if (!now || now.metadata.uid !== uid) return true
    const line = lineOf(now)
    if (line !== last && now.metadata.deletionTimestamp) note(`  ${line}`)
    last = line
    const problem = destroyProblem(now, approved)
    if (problem) throw problem
    return undefined
  }).catch(async error => {
    const run = (await runsOf(client, stack).catch(() => [])).find(run => !isEnded(run))
    if (run) note(`  run/${run.metadata.name} is ${phaseOf(run)}`)
    throw error
  })
}

function lineOf(stack: Stack): string {
  const { reason, message } = stackMessage(stack)
  return message ? `${reason}: ${message}` : reason
}
