import { equal, match } from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'oarlock-package-'))
const nodeFirst = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` }

before(async () => {
  // It builds into dist/ of the checkout, as image/build.ts does.
  const lock = join(root, 'node_modules', '.cache', 'pack.lock')
  mkdirSync(dirname(lock), { recursive: true })
  await run('flock', [lock, 'npm', 'pack', '--pack-destination', folder, '--silent'], { cwd: root, env: nodeFirst })
  writeFileSync(join(folder, 'package.json'), '{ "name": "user", "private": true, "type": "module" }')
  const { stdout } = await run('sh', ['-c', 'ls *.tgz'], { cwd: folder })
  await run('npm', ['install', `./${stdout.trim()}`, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    env: nodeFirst,
  })
})
after(() => rmSync(folder, { recursive: true, force: true }))

test('prints the version of the installed package', async () => {
  const { stdout } = await run('npx', ['oarlock', 'version', '-o', 'json'], { cwd: folder, env: nodeFirst })
  equal(JSON.parse(stdout).version, JSON.parse((await run('npm', ['pkg', 'get', 'version'], { cwd: root })).stdout))
})

test('npx oarlock up of the installed package applies a command Stack', async () => {
  writeFileSync(
    join(folder, 'stack.yaml'),
    `apiVersion: oarlock.dev/v1alpha1
kind: Stack
metadata: { name: hello, namespace: default }
spec:
  engine: command
  source: { inline: { files: { hello.txt: hello } } }
  command: { apply: [cat, hello.txt] }
`,
  )
  const args = ['oarlock', 'up', '--data', join(folder, 'data'), '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0']
  const { stdout } = await run('npx', [...args, '--apply', join(folder, 'stack.yaml'), '--exit-when-ready', '--timeout', '60s'], {
    cwd: folder,
    env: { ...nodeFirst, NO_COLOR: '1' },
  })
  match(stdout, /default\/hello.*Ready/)
})

/** Each Node on PATH that is too old; most machines have one or none, besides the one in node_modules. */
const oldNodes = (process.env.PATH ?? '')
  .split(delimiter)
  .map(directory => join(directory, 'node'))
  .filter(
    path => existsSync(path) && Number.parseInt(spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout, 10) < 24,
  )

test('each entry point and the command line report a Node that is too old', async () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter(name => name !== './package.json')
  for (const node of new Set(oldNodes)) {
    for (const entry of entries) {
      const failure = await run(node, ['--input-type=module', '-e', `import 'oarlock${entry.slice(1)}'`], { cwd: folder }).catch(
        error => error,
      )
      match(failure.stderr, /Error: oarlock requires Node\.js 24 or newer, but this is v[\d.]+: install a newer one/, entry)
    }
    const launcher = join(folder, 'node_modules', '.bin', 'oarlock')
    const failure = await run(launcher, ['version'], { cwd: folder, env: { PATH: dirname(node) } }).catch(error => error)
    match(failure.stderr, /^oarlock: Node\.js v[\d.]+ is too old, 24 or newer is required/)
  }
})

test('the declarations of every entry point are complete with @types/node, also without skipLibCheck', async () => {
  writeFileSync(
    join(folder, 'user.ts'),
    `import { createClient, secretResource } from 'oarlock/client'
import { Manager, controller } from 'oarlock/controller'
import { startServer } from 'oarlock/server'
import { stackResource } from 'oarlock/api'
import { startTestServer } from 'oarlock/testing'
import { equalJson } from 'oarlock/kubernetes'
const server = await startServer({ dataDir: './x', listen: { port: 0 } })
const client = await createClient({ kubeconfig: server.kubeconfigPath })
export const others = [startTestServer, equalJson]
const stack = await client.resource(stackResource).get('a', { namespace: 'b' })
const engine: string = stack.spec.engine
const manager = new Manager({ client })
manager.add(controller({ name: 'c', for: secretResource, reconcile: async ({ key, object, client }) => {
  const { type, metadata }: { type?: string; metadata: { namespace?: string | undefined } } = object ?? { metadata: {} }
  await client.resource(secretResource).getOrUndefined(key + type + engine, { namespace: metadata.namespace })
} }))
// @ts-expect-error the object may have been deleted
manager.add(controller({ name: 'd', for: secretResource, reconcile: async ({ object }) => void object.type }))
// @ts-expect-error the only member of a result is requeueAfterMs
manager.add(controller({ name: 'e', for: secretResource, reconcile: async () => ({ requeueAfter: 5 }) }))
// @ts-expect-error the field is misspelled
stack.spec.enginee
`,
  )
  // The peer dependency, which npm does not install because it is optional.
  mkdirSync(join(folder, 'node_modules', '@types'))
  symlinkSync(join(root, 'node_modules', '@types', 'node'), join(folder, 'node_modules', '@types', 'node'))
  const compilerOptions = { module: 'nodenext', target: 'esnext', strict: true, exactOptionalPropertyTypes: true, noEmit: true }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['user.ts'] }))
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: folder, env: nodeFirst })
})
