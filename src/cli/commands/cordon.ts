import { workerResource } from '../../api/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { note, print } from '../terminal.ts'
import { selectWorkers } from './drain.ts'

export type CordonOptions = AccessOptions & { pool?: string }

/** `oarlock cordon WORKER…`, `oarlock cordon --pool POOL`: the workers get no other Runs. */
export async function cordon(names: string[], options: CordonOptions): Promise<void> {
  await withClient(options, async client => {
    const workers = await selectWorkers(client, names, options.pool)
    if (workers.length === 0) print(`pool/${options.pool} has no workers`)
    for (const { metadata, spec, status } of workers) {
      const { name } = metadata
      if (!spec.cordon) await client.resource(workerResource).patch(name, { spec: { cordon: true } }, { type: 'merge' })
      print(`worker/${name} ${spec.cordon ? 'is already cordoned' : 'cordoned'}`)
      const runs = status?.runs ?? []
      if (runs.length > 0) note(`  ${name} finishes ${runs.join(', ')}`)
    }
  })
}
