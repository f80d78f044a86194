import { joinTokens } from '../../app/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { print } from '../terminal.ts'

/**
 * `oarlock worker revoke WORKER…`: the workers can do nothing more. They cannot renew their Leases, stop their engines because of that, and
 * are declared lost. To let a worker finish its Runs, drain it instead.
 */
export async function revoke(names: readonly string[], { output, ...access }: AccessOptions & { output?: string }): Promise<void> {
  await withClient(access, async client => {
    const { revokeWorker } = await joinTokens()
    const missing: string[] = []
    for (const name of names) {
      if (!(await revokeWorker(client, name))) missing.push(name)
      else if (output === undefined) print(`worker/${name}: credential revoked`)
    }
    const revoked = names.filter(name => !missing.includes(name))
    if (output === 'json' || output === 'yaml')
      print(
        await serialize(
          revoked.map(worker => ({ worker, revoked: true })),
          output,
        ),
      )
    if (missing.length > 0)
      throw new CliError(`${missing.map(name => `worker/${name}`).join(', ')} ${missing.length > 1 ? 'have' : 'has'} no credential`, {
        exitCode: exitCodes.notFound,
        hint: '"oarlock get workers" lists all workers; the credential of a worker that has ended is deleted',
      })
  })
}
