import { installation } from '../../app/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { print } from '../terminal.ts'

/** `oarlock crds check` */
export async function checkCrds(options: AccessOptions): Promise<void> {
  await withClient(options, async client => {
    const { crdRevision, describeCrdState, readCrdState } = await installation()
    const state = await readCrdState(client)
    const text = describeCrdState(state)
    if (state.kind === 'missing' || state.kind === 'older')
      throw new CliError(`the server ${client.server} ${text}`, {
        exitCode: exitCodes.failed,
        hint: 'run "oarlock crds upgrade" as a user who may write CRDs',
      })
    print(`the server ${client.server} ${text}; this version needs ${crdRevision}`)
  })
}

/** `oarlock crds upgrade` */
export async function upgradeCrds(options: AccessOptions): Promise<void> {
  await withClient(options, async client => {
    const { describeCrdState, readCrdState, upgradeCrds: upgrade } = await installation()
    const before = await readCrdState(client)
    print(`the server ${client.server} ${describeCrdState(before)}`)
    if (before.kind !== 'missing' && before.kind !== 'older') return
    await upgrade(client)
    print(`it ${describeCrdState(await readCrdState(client))} now`)
  })
}
