/** The bundle of a checkout: run when it is of the sources as they are, and never when one of them has changed. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const repository = join(import.meta.dirname, '..')
const root = mkdtempSync(join(tmpdir(), 'oarlock-bundle-'))
after(() => rmSync(root, { recursive: true, force: true }))

const { bundleCheckout } = (await import(join(repository, 'scripts', 'bundle.mjs'))) as { bundleCheckout(root: string): Promise<void> }

const write = (path: string, text: string) => writeFileSync(join(root, path), text)
async function start(env: NodeJS.ProcessEnv = {}): Promise<{ says: string; isBundled: boolean; place: string }> {
  const { stdout } = await run(process.execPath, [join(root, 'bin', 'oarlock.js')], {
    env: { ...process.env, OARLOCK_BUNDLE: undefined, ...env },
  })
  return JSON.parse(stdout)
}
const bundles = () => readdirSync(join(root, 'node_modules', '.cache', 'oarlock')).filter(name => name.startsWith('bundle-'))

test('a changed source is run itself until the next bundle, which workers of a running process do not see', async () => {
  for (const directory of ['src/cli', 'src/kube/cel', 'node_modules', 'scripts']) mkdirSync(join(root, directory), { recursive: true })
  cpSync(join(repository, 'bin'), join(root, 'bin'), { recursive: true })
  for (const name of ['rolldown', '@rolldown', '@oxc-project'])
    symlinkSync(join(repository, 'node_modules', name), join(root, 'node_modules', name))
  write('package.json', '{ "type": "module", "sideEffects": false }')
  write('package-lock.json', '{}')
  write('scripts/bundle.mjs', '')
  write(
    'src/cli/main.ts',
    `import { says } from '../kube/index.ts'
const place = import.meta.dirname as string
console.log(JSON.stringify({ says: says(), isBundled: new Error('here').stack?.includes('/bundle-'), place, env: process.env.OARLOCK_BUNDLE }))`,
  )
  write(
    'src/kube/says.ts',
    `import { createRequire } from 'node:module'
import { count } from './count.ts'
export function says(): string {
  const late = createRequire(import.meta.url)(import.meta.url.endsWith('.ts') ? './cel/index.ts' : './cel/index.js') as { next(): number }
  return \`\${count.value++} \${late.next()}\`
}`,
  )
  write('src/kube/index.ts', "export { says } from './says.ts'")
  write('src/kube/count.ts', 'export const count = { value: 1 }')
  // What is required late shares the modules of who requires it.
  write('src/kube/cel/index.ts', `import { count } from '../count.ts'\nexport const next = () => count.value++`)

  const place = join(root, 'src', 'cli')
  const { isBundled, ...first } = await start()
  deepEqual({ isBundled, says: first.says, place: first.place }, { isBundled: false, says: '1 2', place })

  await bundleCheckout(root)
  const [old = ''] = bundles()
  const second = await start()
  deepEqual({ isBundled: second.isBundled, says: second.says, place: second.place }, { isBundled: true, says: '1 2', place })

  await bundleCheckout(root)
  deepEqual(bundles(), [old], 'a bundle that is fresh was made again')

  write('src/kube/count.ts', 'export const count: { value: number } = { value: 10 }')
  const third = await start()
  deepEqual({ isBundled: third.isBundled, says: third.says }, { isBundled: false, says: '10 11' })
  const ofOld = await start({ OARLOCK_BUNDLE: join(root, 'node_modules', '.cache', 'oarlock', old) })
  deepEqual({ isBundled: ofOld.isBundled, says: ofOld.says }, { isBundled: true, says: '1 2' })
  equal((await start({ OARLOCK_BUNDLE: '' })).says, '10 11')
  // Nothing that a stranger names is run.
  equal((await start({ OARLOCK_BUNDLE: tmpdir() })).isBundled, false)

  await bundleCheckout(root)
  const fourth = await start()
  deepEqual({ isBundled: fourth.isBundled, says: fourth.says }, { isBundled: true, says: '10 11' })

  // Nothing of a file that only hands on is left in the bundle, and yet it decides what is there.
  write('src/kube/index.ts', "export const says = () => 'other'")
  equal((await start()).says, 'other')
})

test('a source that cannot be bundled is said, and runs as it is', async t => {
  write('src/kube/index.ts', "export * from './missing.ts'")
  const said = t.mock.method(console, 'error', () => {})
  await bundleCheckout(root)
  match(String(said.mock.calls[0]?.arguments[0]), /runs from its sources, as they could not be bundled: .*missing\.ts/s)
  equal(bundles().length <= 3, true)
})
