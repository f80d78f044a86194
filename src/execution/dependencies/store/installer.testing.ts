/**
 * A process of a test that needs a digest: it takes the tree, or installs it. Sends what it did, and the number of installs is the number of
 * lines in `log`. With `crashAfterMs` it is killed while it installs.
 */
import { appendFileSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { RootDirectory } from '../../../kubernetes/util/index.ts'
import { DependencyStore } from './dependency-store.ts'

const [directory, digest, log, crashAfterMs] = process.argv.slice(2) as [string, string, string, string?]
const store = new DependencyStore({ directory, domain: 'test' })
let waits = 0
const found = await store.acquireOrLock(digest, { signal: AbortSignal.timeout(60_000), onWaiting: () => void waits++ })
if ('tree' in found) {
  await found.tree.release()
  process.send?.({ did: 'found', waits })
} else {
  if (crashAfterMs !== undefined) setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(crashAfterMs))
  await found.lock.report({ run: `${process.pid}`, step: 'npm ci', sinceMs: Date.now() })
  const run = mkdtempSync(join(directory, '..', 'run-'))
  const modules = join(run, 'work', 'node_modules')
  for (let number = 0; number < 300; number++) {
    mkdirSync(join(modules, `p${number}`), { recursive: true })
    for (const name of ['index.js', 'package.json']) writeFileSync(join(modules, `p${number}`, name), `${name} ${number}`)
  }
  symlinkSync('p1/index.js', join(modules, 'link'))
  await delay(50)
  const tree = await store.add({
    ...{
      digest,
      inputs: [],
      manager: 'npm',
      runName: 'r',
      installSeconds: 1,
      files: new RootDirectory(run),
      produced: [],
      transfer: 'Move',
    },
    trees: [{ place: { base: 'source', path: 'node_modules' }, path: modules, checkLink: ({ target }) => target }],
  })
  appendFileSync(log, `${process.pid}\n`)
  await tree.release()
  await found.lock.release()
  process.send?.({ did: 'installed', waits })
}
process.disconnect?.()
