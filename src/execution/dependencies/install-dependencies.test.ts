import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { networkProblem, skip as noSandbox } from '../workspace/isolation/isolated-run.testing.ts'
import { createStore, startRun } from './install.testing.ts'
import { installDependencies } from './install-dependencies.ts'
import { relocateLiterals, relocatePaths, relocateScript } from './relocate-virtual-environment.ts'
import { DependencyStore } from './store/dependency-store.ts'

const temporary = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
after(() => rmSync(temporary, { recursive: true }))
const has = (program: string) => existsSync(join('/usr/bin', program))
const noNpm = has('npm') ? false : 'needs npm in /usr/bin'

/** A package as a registry serves it. */
function packPackage(name: string, files: Record<string, string>): { tarball: Buffer; integrity: string } {
  const directory = mkdtempSync(join(temporary, 'pack-'))
  mkdirSync(join(directory, 'package'))
  for (const [path, text] of Object.entries({ 'package.json': JSON.stringify({ name, version: '1.0.0' }), ...files }))
    writeFileSync(join(directory, 'package', path), text)
  const tarball = execFileSync('tar', ['-C', directory, '-cz', 'package'])
  return { tarball, integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}` }
}

const dep = packPackage('dep', { 'index.js': 'module.exports = "dep"' })

/** An npm project that needs no network: a package of the source, and a local shared one. */
function npmProject(more: Record<string, unknown> = {}): Record<string, string | Buffer> {
  const dependencies = { dep: 'file:dep.tgz', shared: 'file:shared' }
  const root = { name: 'p', version: '1.0.0', dependencies, ...more }
  const packages = {
    '': { ...root },
    'node_modules/dep': { version: '1.0.0', resolved: 'file:dep.tgz', integrity: dep.integrity },
    'node_modules/shared': { resolved: 'shared', link: true },
    shared: { name: 'shared', version: '1.0.0' },
  }
  return {
    'package.json': JSON.stringify(root),
    'package-lock.json': JSON.stringify({ name: 'p', version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
    'dep.tgz': dep.tarball,
    'shared/package.json': JSON.stringify({ name: 'shared', version: '1.0.0' }),
    'shared/index.js': 'module.exports = "shared"',
    'stacks/a/index.js': 'console.log(require("dep"), require("shared"))',
  }
}

for (const { level, network, attachedAs, skip } of [
  { level: 'Sandbox', network: 'None', attachedAs: 'BindMount', skip: noNpm || noSandbox },
  { level: 'Sandbox', network: 'Private', attachedAs: 'BindMount', skip: noNpm || networkProblem },
  { level: 'Process', network: 'Host', attachedAs: process.getuid?.() === 0 ? undefined : 'Installed', skip: noNpm },
] as const) {
  test(`an npm project is installed once, at level ${level} with network ${network}, and further Runs find its packages`, {
    skip,
  }, async t => {
    const store = createStore()
    const first = await startRun(t, { level, network, store, files: npmProject() })
    const directory = join(first.directory.work, 'stacks/a')
    const installed = await installDependencies(first.context, { directory })
    equal(installed?.source, 'Installed', first.log.join('\n'))
    if (attachedAs) equal(installed.attachedAs, attachedAs)
    deepEqual((await first.run('node stacks/a/index.js', undefined, { PATH: '/usr/bin:/bin' })).lines, ['dep shared'])

    const second = await startRun(t, { level, network, store, files: { ...npmProject(), 'stacks/a/other.js': '' } })
    const reported: unknown[] = []
    second.context.dependencies.onInstalled = report => void reported.push(report)
    const found = await installDependencies(second.context, { directory: join(second.directory.work, 'stacks/a') })
    equal(found?.source, 'Cached')
    equal(found.digest, installed.digest)
    deepEqual(reported, [found])
    ok(found.installSeconds > 0 && found.seconds >= 0 && found.bytes > 4_000, JSON.stringify(found))
    deepEqual([installed.installSeconds, installed.bytes], [found.installSeconds, found.bytes])
    deepEqual((await second.run('node stacks/a/index.js', undefined, { PATH: '/usr/bin:/bin' })).lines, ['dep shared'])
    match(second.log.join('\n'), /dependencies of npm \(.*\) that Run run-.* has installed in .* s: available after .* s/)
    deepEqual(
      installed.inputs
        .filter(({ kind }) => ['manager', 'runtime', 'lockFile', 'localPackage'].includes(kind))
        .map(({ kind, name }) => `${kind} ${name}`)
        .sort(),
      ['localPackage dep.tgz', 'localPackage shared', 'lockFile package-lock.json', 'manager npm', 'runtime node'],
    )
  })
}

for (const { level, network, skip } of [
  { level: 'Sandbox', network: 'None', skip: noNpm || noSandbox },
  { level: 'Process', network: 'Host', skip: noNpm },
] as const) {
  test(`projects of one source have trees of their own, at level ${level}`, { skip }, async t => {
    const store = createStore()
    const inDirectory = (directory: string, files: Record<string, string | Buffer>) =>
      Object.fromEntries(Object.entries(files).map(([name, content]) => [`${directory}/${name}`, content]))
    const files = { ...inDirectory('a', npmProject()), ...inDirectory('b', npmProject({ description: 'another' })) }
    const { context, directory, run } = await startRun(t, { level, network, store, files })
    const a = await installDependencies(context, { directory: join(directory.work, 'a') })
    const b = await installDependencies(context, { directory: join(directory.work, 'b'), earlier: [a!] })
    const placesOf = (installed: typeof a) => installed?.trees.map(({ place }) => place.path)
    deepEqual([placesOf(a), placesOf(b)], [['a/node_modules'], ['b/node_modules']])
    equal(await installDependencies(context, { directory: join(directory.work, 'b/stacks/a'), earlier: [a!, b!] }), b, 'the same packages')
    const command = 'node a/stacks/a/index.js && node b/stacks/a/index.js'
    deepEqual((await run(command, undefined, { PATH: '/usr/bin:/bin' })).lines, ['dep shared', 'dep shared'])
  })
}

test('of Runs that need the same packages concurrently, one installs them and the others report that they wait', {
  skip: noNpm || noSandbox,
}, async t => {
  const store = createStore()
  const runs = await Promise.all([1, 2, 3].map(() => startRun(t, { level: 'Sandbox', network: 'None', store, files: npmProject() })))
  const results = await Promise.all(runs.map(({ context, directory }) => installDependencies(context, { directory: directory.work })))
  deepEqual(results.map(result => result?.source).sort(), ['Installed', 'Waited', 'Waited'])
  const logs = runs.map(({ log }) => log.join('\n'))
  equal(logs.filter(log => /waiting for (Run run-.*|another Run), which installs the same dependencies/.test(log)).length, 2)
})

test('install scripts get no credentials but those that are listed, and what they create in the source is kept', {
  skip: noNpm || noSandbox,
}, async t => {
  const store = createStore()
  const scripts = { prepare: 'mkdir -p dist && printenv AWS_KEY NPM_TOKEN REGION | tr "\\n" " " > dist/env.txt; test -s dist/env.txt' }
  const options = {
    ...({ level: 'Sandbox', network: 'None', store, files: npmProject({ scripts }) } as const),
    env: { AWS_KEY: 'secret', NPM_TOKEN: 'token', REGION: 'eu' },
    credentialNames: ['AWS_KEY', 'NPM_TOKEN'],
  }
  for (const how of ['Installed', 'Cached']) {
    const { context, directory, run } = await startRun(t, options)
    const result = await installDependencies(context, { directory: directory.work, installEnvironment: ['NPM_TOKEN'] })
    equal(result?.source, how)
    deepEqual((await run('cat dist/env.txt; touch dist/more && echo writable')).lines, ['token eu writable'])
    deepEqual(
      result.inputs.filter(({ kind }) => kind === 'environment').map(({ name, value }) => `${name} ${value.split(':')[0]}`),
      ['PATH sha256', 'NPM_TOKEN scrypt', 'REGION sha256'],
    )
  }
})

test('a damaged tree is found, and installed again', { skip: noNpm || noSandbox }, async t => {
  const store = createStore()
  const first = await startRun(t, { level: 'Sandbox', network: 'None', store, files: npmProject() })
  const { digest } = (await installDependencies(first.context, { directory: first.directory.work }))!
  const tree = (await new DependencyStore(store).acquire(digest))!
  writeFileSync(join(tree.path, 't/0/dep/index.js'), 'module.exports = "bad"')
  await tree.release()
  const second = await startRun(t, { level: 'Sandbox', network: 'None', store, files: npmProject() })
  equal((await installDependencies(second.context, { directory: second.directory.work }))?.source, 'Installed')
  match(second.log.join('\n'), /are damaged and are installed again: it has changed: t\/0\/dep\/index\.js/)
  deepEqual((await second.run('node stacks/a/index.js', undefined, { PATH: '/usr/bin:/bin' })).lines, ['dep shared'])
})

test('a failed install has the output of the package manager, leaves nothing, and the next Run tries again', {
  skip: noNpm || noSandbox,
}, async t => {
  const store = createStore()
  const bad = { ...npmProject(), 'package.json': JSON.stringify({ name: 'p', dependencies: { missing: 'file:missing.tgz' } }) }
  for (let attempts = 0; attempts < 2; attempts++) {
    const { context, directory } = await startRun(t, { level: 'Sandbox', network: 'None', store, files: bad })
    await rejects(installDependencies(context, { directory: directory.work }), {
      name: 'DependencyError',
      reason: 'DependencyInstallFailed',
      retryable: true,
      message: /^npm ci .* exited with code \d+: npm /,
    })
  }
})

test('a package manager that is missing is reported with what was looked for and how to install it', async t => {
  const files = { 'package.json': '{}', 'pnpm-lock.yaml': '' }
  const { context, directory } = await startRun(t, { level: 'Process', store: createStore(), files, env: { PATH: '/nowhere' } })
  await rejects(installDependencies(context, { directory: directory.work }), {
    reason: 'PackageManagerNotFound',
    retryable: false,
    message: /need pnpm: pnpm was not found in PATH "\/nowhere"; npm install --global pnpm/,
  })
})

test('a canceled Run ends its install, and its lock', { skip: noNpm || noSandbox }, async t => {
  const store = createStore()
  const files = npmProject({ scripts: { prepare: 'echo started; sleep 60' } })
  const { context, directory, abort } = await startRun(t, { level: 'Sandbox', network: 'None', store, files })
  setTimeout(() => abort.abort(new Error('canceled')), 3_000)
  await rejects(installDependencies(context, { directory: directory.work }), /canceled/)
  const { context: next, directory: at } = await startRun(t, { level: 'Sandbox', network: 'None', store, files: npmProject() })
  ok(await installDependencies(next, { directory: at.work }))
})

test('without a lock file the packages are those of the day', { skip: noNpm || noSandbox }, async t => {
  const { 'package-lock.json': _, ...files } = npmProject()
  const { context, directory } = await startRun(t, { level: 'Sandbox', network: 'None', store: createStore(), files })
  const result = await installDependencies(context, { directory: directory.work })
  equal(result?.inputs.find(({ kind }) => kind === 'resolvedOn')?.value.length, 10)
  equal(existsSync(join(directory.work, 'package-lock.json')), false)
})

test('a project without dependencies of a known kind has none', async t => {
  const { context, directory } = await startRun(t, { level: 'Process', store: createStore(), files: { 'Pulumi.yaml': 'runtime: yaml' } })
  equal(await installDependencies(context, { directory: directory.work }), undefined)
})

test('scripts, paths and tables of a virtual environment become relative', () => {
  const start = `#!/bin/sh\n'''exec' "$(dirname -- "$(realpath -- "$0")")/python3" "$0" "$@"\n' '''\n`
  equal(relocateScript('#!/r/work/.venv/bin/python3\nimport x\n', '/r/work/.venv'), `${start}import x\n`)
  equal(relocateScript(`#!/bin/sh\n'''exec' /r/work/.venv/bin/python3 "$0" "$@"\n' '''\nimport x\n`, '/r/work/.venv'), `${start}import x\n`)
  equal(relocateScript('#!/bin/sh\necho\n', '/r/work/.venv'), '#!/bin/sh\necho\n')
  equal(relocateScript('#!/usr/bin/python3\n', '/r/work/.venv'), '#!/usr/bin/python3\n')
  equal(
    relocatePaths('/r/work/lib\nimport x\n/r/workshop\n', '/r/work/.venv/lib/python3/site-packages', '/r/work'),
    '../../../../lib\nimport x\n/r/workshop\n',
  )
  const literals = relocateLiterals("MAPPING = {'a': '/r/work/lib/a', 'b': '/other'}", '/r/work/.venv/s', '/r/work')
  match(literals, /\{'a': __import__\('os'\)\.path\.normpath\(.*__file__\), '\.\.\/\.\.\/lib\/a'\)\), 'b': '\/other'\}/)
})
