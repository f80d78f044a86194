import { expectedStateVersion, oarlockCommand } from '../../api/index.ts'
import { decideStateError, formatStateError, newestNumber } from '../../stores/state/index.ts'
import type { AccessOptions } from '../access.ts'
import { confirm, note, print } from '../terminal.ts'
import { withState } from './state.ts'

/** `oarlock state accept STACK`: Runs start from the newest stored state, or from none, although a Run has stored a newer one. */
export async function acceptState(target: string, options: AccessOptions & { yes?: boolean }): Promise<void> {
  await withState(target, options, async ({ stack, state, name, namespace }) => {
    const newest = newestNumber(await state.versions())
    const error = decideStateError(expectedStateVersion(stack), newest)
    if (!error) return note(`stack/${name} has the state that its last Run stored: nothing to accept`)
    note(`stack/${name}: ${formatStateError(error)}`)
    await confirm(
      newest === 0
        ? `start stack/${name} without a state? What it has created exists, is not managed any more, and is created again.`
        : `continue stack/${name} with version ${newest}? What was created since is not managed any more, and may be created again.`,
      options,
    )
    const version = await state.accept()
    print(`stack/${name}: ${newest === 0 ? 'no state' : `version ${newest}`} is accepted, as version ${version}`)
    note(`hint: "${oarlockCommand('plan', { name, namespace })}" shows what would change`)
  })
}
