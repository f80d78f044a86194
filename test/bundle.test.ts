/** The bundle of a checkout: it runs while it is as new as the sources, and never after one of them has changed. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const repository = join(import.meta.dirname, '..')
const root = realpathSync(mkdtempSync(join(tmpdir(), 'oarlock-bundle-')))
after(() => rmSync(root, { recursive: true, force: true }))

const { bundleCheckout, workerModules } = (await import(join(repository, 'scripts', 'bundle.mjs'))) as {
  bundleCheckout(root: string): Promise<void>
  workerModules: readonly string[]
}

const write = (path: string, text: string) => writeFileSync(join(root, path), text)
type Output = { text: string; isBundled: boolean; sourceDirectory: string; moduleExtension: string }
/** Runs the program of the test's own checkout, and returns what it printed. */
async function start(env: NodeJS.ProcessEnv = {}): Promise<Output> {
  const { stdout } = await run(process.execPath, [join(root, 'bin', 'oarlock.js')], {
    env: { ...process.env, OARLOCK_BUNDLE: undefined, ...env },
  })
  return JSON.parse(stdout)
}
const bundles = () => readdirSync(join(root, 'node_modules', '.cache', 'oarlock')).filter(name => name.startsWith('bundle-'))

test('runs the sources after a change until the next bundle, while workers keep the bundle of their process', async () => {
  for (const directory of ['src/cli', 'src/kubernetes/cel', 'src/kubernetes/util', 'src/kubernetes/schema', 'node_modules', 'scripts'])
    mkdirSync(join(root, directory), { recursive: true })
  cpSync(join(repository, 'bin'), join(root, 'bin'), { recursive: true })
  for (const name of ['rolldown', '@rolldown', '@oxc-project'])
    symlinkSync(join(repository, 'node_modules', name), join(root, 'node_modules', name))
  write('package.json', '{ "type": "module", "sideEffects": false }')
  write('package-lock.json', '{}')
  write('scripts/bundle.mjs', '')
  write(
    'src/cli/main.ts',
    `import { count } from '../kubernetes/index.ts'
import { sourceDirectory, moduleExtension } from '../kubernetes/util/source-files.ts'
console.log(JSON.stringify({ text: count(), isBundled: new Error('here').stack?.includes('/bundle-'), sourceDirectory, moduleExtension }))`,
  )
  write(
    'src/kubernetes/use-cel.ts',
    `import { counter } from './counter.ts'
import { loadCel } from './schema/load-cel.ts'
export function count(): string {
  const before = counter.value++
  return \`\${before} \${loadCel().next()}\`
}`,
  )
  write('src/kubernetes/index.ts', "export { count } from './use-cel.ts'")
  write('src/kubernetes/counter.ts', 'export const counter = { value: 1 }')
  // The two modules that the bundle replaces.
  for (const name of ['util/source-files.ts', 'schema/load-cel.ts'])
    cpSync(join(repository, 'src', 'kubernetes', name), join(root, 'src', 'kubernetes', name))
  write('src/kubernetes/util/index.ts', "export * from './source-files.ts'")
  // A module that is required later shares its imports with the module that requires it.
  write('src/kubernetes/cel/index.ts', `import { counter } from '../counter.ts'\nexport const next = () => counter.value++`)

  const files = { sourceDirectory: join(root, 'src'), moduleExtension: '.ts' }
  deepEqual(await start(), { text: '1 2', isBundled: false, ...files })

  await bundleCheckout(root)
  const [old = ''] = bundles()
  deepEqual(await start(), { text: '1 2', isBundled: true, ...files })

  await bundleCheckout(root)
  deepEqual(bundles(), [old], 'a fresh bundle was made again')

  write('src/kubernetes/counter.ts', 'export const counter: { value: number } = { value: 10 }')
  const third = await start()
  deepEqual({ isBundled: third.isBundled, text: third.text }, { isBundled: false, text: '10 11' })
  const ofOld = await start({ OARLOCK_BUNDLE: join(root, 'node_modules', '.cache', 'oarlock', old) })
  deepEqual({ isBundled: ofOld.isBundled, text: ofOld.text }, { isBundled: true, text: '1 2' })
  equal((await start({ OARLOCK_BUNDLE: '' })).text, '10 11')
  // A directory outside the cache is not run, whatever the environment says.
  equal((await start({ OARLOCK_BUNDLE: tmpdir() })).isBundled, false)

  await bundleCheckout(root)
  const fourth = await start()
  deepEqual({ isBundled: fourth.isBundled, text: fourth.text }, { isBundled: true, text: '10 11' })

  // A file that only re-exports leaves nothing in the bundle, and yet it decides what is in there.
  write('src/kubernetes/index.ts', "export const count = () => 'other'")
  equal((await start()).text, 'other')
})

test('reports sources that cannot be bundled, and runs them unbundled', async t => {
  write('src/kubernetes/index.ts', "export * from './missing.ts'")
  const errors = t.mock.method(console, 'error', () => {})
  await bundleCheckout(root)
  match(String(errors.mock.calls[0]?.arguments[0]), /cannot bundle the sources, so they run unbundled: .*missing\.ts/s)
  equal(bundles().length <= 3, true)
})

test('every module of the worker chunk exists', () => {
  deepEqual(
    workerModules.filter(path => !existsSync(join(repository, 'src', `${path}.ts`))),
    [],
  )
})
