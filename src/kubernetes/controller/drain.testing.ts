/**
 * An operator whose reconcile never ends and ignores its signal, for `drain-process.test.ts`: `node drain.testing.ts SERVER GRACE_MS`.
 * Prints `working` when it has started and `drained` when `manager.run()` has returned.
 */
import { configMapResource, createClient } from '../client/index.ts'
import { controller, Manager, silentLog } from './index.ts'

const [server = '', graceMs = ''] = process.argv.slice(2)
const client = await createClient({ cluster: { server } })
const manager = new Manager({ client, log: silentLog })
manager.add(
  controller({
    name: 'endless',
    for: configMapResource,
    reconcile: () => {
      process.stdout.write('working\n')
      return new Promise(() => undefined)
    },
  }),
)
await manager.run({ graceMs: Number(graceMs) })
await client.close()
process.stdout.write('drained\n')
