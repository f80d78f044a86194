import { type Worker, workerResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { getWorkers } from './drain.ts'

/** A worker that lives says within moments what became of it. */
const responseTimeoutMs = 15_000
const pollIntervalMs = 100

/** `oarlock uncordon WORKER…`: workers that drain and still have Runs to finish take new ones again. */
export async function uncordon(names: string[], options: AccessOptions): Promise<void> {
  await withClient(options, async client => {
    for (const { metadata, spec } of await getWorkers(client, names)) {
      const { name } = metadata
      if (!spec.drain) {
        print(`worker/${name} does not drain`)
        continue
      }
      await cancelDrain(client, name)
      print(`worker/${name} takes Runs again`)
      if (spec.lifecycle === 'OneShot')
        note(`  ${name} is one-shot: it has ${spec.slots === 1 ? 'a single Run' : `${spec.slots} Runs`} in all`)
    }
  })
}

async function cancelDrain(client: Client, name: string): Promise<void> {
  const workers = client.resource(workerResource)
  // It says that it drains before it acts on it: only then is it known that no Run can get lost in between.
  const draining = await until(client, name, ({ status }) => status?.phase === 'Draining')
  const { reason } = draining.status ?? {}
  if (reason !== 'DrainRequested') {
    throw new CliError(`worker "${name}" drains for another reason (${reason}), which cannot be taken back`, {
      exitCode: exitCodes.refused,
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
      throw new CliError(`worker "${name}" goes on draining`, {
        exitCode: exitCodes.timedOut,
        hint: 'its grace may be over and its Runs interrupted: then it ends',
      })
    }
    await new Promise(resolve => setTimeout(resolve, pollIntervalMs))
  }
}

const workerEnded = (name: string) =>
  new CliError(`worker "${name}" has ended`, { exitCode: exitCodes.notFound, hint: 'its pool starts another when it needs one' })
