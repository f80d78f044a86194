/** A process of a test that adds a tree to a content store and takes it, five times. Sends its digest. With `crash` it is killed while it copies. */
import { globSync } from 'node:fs'
import { RootDirectory } from '../../kubernetes/util/index.ts'
import { ContentStore } from './content-store.ts'

const [directory, domain, key, source, crash] = process.argv.slice(2) as [string, string, string, string, string?]
const killWhenCopying = (): void => {
  if (globSync(`${directory}/staging/new-*/plugin`).length > 0) process.kill(process.pid, 'SIGKILL')
  setImmediate(killWhenCopying)
}
if (crash === 'crash') killWhenCopying()
const store = new ContentStore({ directory, domain })
let digest = ''
for (let count = 0; count < 5; count++) {
  digest = await store.add(key, new RootDirectory(source), '')
  const found = await store.take(key, digest)
  if (!found) throw new Error(`${digest} is not found`)
  await found.release()
}
process.send?.(digest)
process.disconnect?.()
