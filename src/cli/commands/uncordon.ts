import { type Worker, workerResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { note, print } from '../terminal.ts'
import { getWorkers } from './drain.ts'

/** A live worker reports its phase within moments. */
const responseTimeoutMs = 15_000
const pollIntervalMs = 100

/** `oarlock uncordon WORKER…`: lets cordoned workers accept Runs, and cancels the drain of those that still have active Runs. */
export async function uncordon(names: string[], options: AccessOptions): Promise<void> {
  await withClient(options, async client => {
    for (const { metadata, spec } of await getWorkers(client, names)) {
      const { name } = metadata
      if (!spec.drain && !spec.cordon) {
        print(`worker/${name} is neither cordoned nor draining`)
        continue
      }
      if (spec.drain) await cancelDrain(client, name)
      if (spec.cordon) await client.resource(workerResource).patch(name, { spec: { cordon: null } }, { type: 'merge' })
      print(`worker/${name} uncordoned`)
      if (spec.lifecycle === 'OneShot')
        note(`  ${name} is one-shot: it executes at most ${spec.slots === 1 ? 'one Run' : `${spec.slots} Runs`} in total`)
    }
  })
}

async function cancelDrain(client: Client, name: string): Promise<void> {
  const workers = client.resource(workerResource)
  // The worker reports phase Draining before it acts on it. Only after that is it certain that no Run is lost when the drain is canceled.
  const draining = await until(client, name, ({ status }) => status?.phase === 'Draining')
  const { reason } = draining.status ?? {}
  if (reason !== 'DrainRequested') {
    throw new CliError(`cannot uncordon worker "${name}": it drains for reason ${reason}, not because of "oarlock drain"`, {
      exitCode: exitCodes.rejected,
    })
  }
  try {
    await workers.patch(name, { spec: { drain: false } }, { type: 'merge' })
  } catch (error) {
    if (isReason(error, 'NotFound')) throw workerEnded(name)
    throw error
  }
  await until(client, name, ({ status }) => status?.phase !== 'Draining')
}

async function until(client: Client, name: string, isReached: (worker: Worker) => boolean): Promise<Worker> {
  const endMs = performance.now() + responseTimeoutMs
  for (;;) {
    const worker = await client.resource(workerResource).getOrUndefined(name)
    if (!worker) throw workerEnded(name)
    if (isReached(worker)) return worker
    if (performance.now() > endMs) {
      throw new CliError(`worker "${name}" is still draining`, {
        exitCode: exitCodes.timedOut,
        hint: 'its drain grace may have expired; it exits when its Runs have been interrupted',
      })
    }
    await new Promise(resolve => setTimeout(resolve, pollIntervalMs))
  }
}

const workerEnded = (name: string) =>
  new CliError(`worker "${name}" has exited`, { exitCode: exitCodes.notFound, hint: 'its pool starts a new worker when it needs one' })
