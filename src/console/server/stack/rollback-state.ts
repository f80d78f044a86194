import type { Client } from '../../../kubernetes/client/index.ts'
import { badRequest, StatusError } from '../../../kubernetes/object/index.ts'
import type { CallTasks } from '../offload/index.ts'
import { readStack } from './stack-request.ts'
import { currentOf, rollbackProblem } from './state-versions.ts'
import { expectManaged, StoredState, sizeOf } from './stored-state.ts'

export type Rollback = {
  readonly namespace: string
  readonly name: string
  /** The version that becomes the current one, as a new version. */
  readonly version: number
  /** The version that was the current one when the user looked. */
  readonly currentVersion: number
}

/**
 * Makes an older version of the state the current one, as `oarlock state rollback` does. Returns what to show.
 * @throws {StatusError} Conflict if another version has become the current one since the user looked, or a Run has the lock.
 */
export async function rollbackState(
  client: Client,
  user: string,
  { namespace, name, version: number, currentVersion }: Rollback,
  tasks: CallTasks,
): Promise<string> {
  const target = { client, namespace, name }
  const stack = await readStack(target)
  expectManaged(stack)
  const state = new StoredState(target)
  const versions = await state.versions()
  const version = versions.find(each => each.version === number)
  if (!version)
    throw new StatusError('NotFound', `version ${number} of the state of stack/${name} is not stored: it may have been deleted since`)
  const problem = rollbackProblem(version, versions, stack)
  if (problem !== undefined) throw new StatusError('Conflict', `version ${number} cannot become the current state: ${problem}`)
  if (version.kind !== 'terraform' && version.kind !== 'pulumi') throw badRequest(`version ${number} is no state`)
  const { kind } = version
  const stored = await tasks.withStates(sizeOf(version, currentOf(versions, kind)), async run => {
    const content = await state.read(version)
    return await state.write(kind, user, `console: rollback to version ${number}`, async () => {
      const current = currentOf(await state.versions(), kind)
      if (current?.version !== currentVersion)
        throw new StatusError(
          'Conflict',
          `version ${current?.version ?? 'none'} is the current state now, and ${currentVersion} was when you looked: look again`,
        )
      return await run('withNewerSerial', content, await state.read(current))
    })
  })
  return `stack/${name}: version ${number} is the current state, stored as version ${stored}; the resources may differ from it until the next Run`
}
