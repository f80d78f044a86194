import { deepEqual, equal, notEqual, rejects } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RootDirectory } from '../../../kubernetes/util/index.ts'
import { dependencyDigest } from '../dependency-input.ts'
import type { ManagerName } from '../managers/package-manager.ts'
import { SourceFiles } from '../source-files.ts'
import { parseRequirements } from './detect-python.ts'
import { detectDependencies, type Runtime } from './index.ts'

type Files = Record<string, string>

function write(root: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

function sourceOf(t: TestContext, files: Files): { source: SourceFiles; root: string } {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const root = join(base, 'work')
  write(root, files)
  return { source: new SourceFiles(new RootDirectory(base), root), root }
}

async function detect(t: TestContext, files: Files, directory: string, more: { manager?: ManagerName; runtime?: Runtime } = {}) {
  return await detectDependencies({ source: sourceOf(t, files).source, directory, ...more })
}

const json = (value: unknown) => JSON.stringify(value)

for (const { name, files, directory = '', want, more } of [
  { name: 'package-lock.json', files: { 'package.json': '{}', 'package-lock.json': '{}' }, want: ['npm', '', true] },
  { name: 'npm-shrinkwrap.json', files: { 'package.json': '{}', 'npm-shrinkwrap.json': '{}' }, want: ['npm', '', true] },
  { name: 'no lock file', files: { 'package.json': '{}' }, want: ['npm', '', false] },
  { name: 'pnpm-lock.yaml', files: { 'package.json': '{}', 'pnpm-lock.yaml': '' }, want: ['pnpm', '', true] },
  { name: 'yarn.lock of yarn 1', files: { 'package.json': '{}', 'yarn.lock': '# yarn lockfile v1' }, want: ['yarn', '', true] },
  {
    name: 'yarn.lock of yarn 4',
    files: { 'package.json': '{}', 'yarn.lock': '__metadata:\n  version: 8' },
    want: ['yarn-berry', '', true],
  },
  { name: 'bun.lock', files: { 'package.json': '{}', 'bun.lock': '{}' }, want: ['bun', '', true] },
  {
    name: 'packageManager that another lock file contradicts',
    files: { 'package.json': json({ packageManager: 'pnpm@10.1.0+sha512.abc' }), 'package-lock.json': '{}' },
    want: ['pnpm', '', false],
  },
  {
    name: 'packageManager of yarn 4 without a lock file',
    files: { 'package.json': json({ packageManager: 'yarn@4.9.0' }) },
    want: ['yarn-berry', '', false],
  },
  {
    name: 'the option of the Stack, and two lock files',
    files: { 'package.json': '{}', 'yarn.lock': '', 'package-lock.json': '{}' },
    more: { manager: 'yarn' },
    want: ['yarn', '', true],
  },
  {
    name: 'a directory of a project',
    files: { 'package.json': '{}', 'package-lock.json': '{}', 'stacks/a/Pulumi.yaml': '' },
    directory: 'stacks/a',
    want: ['npm', '', true],
  },
  {
    name: 'a member of an npm workspace',
    files: { 'package.json': json({ workspaces: ['apps/*'] }), 'package-lock.json': '{}', 'apps/a/package.json': '{}' },
    directory: 'apps/a',
    want: ['npm', '', true],
  },
  {
    name: 'a project next to the members of a workspace',
    files: { 'package.json': json({ workspaces: ['apps/*', '!apps/b'] }), 'package-lock.json': '{}', 'apps/b/package.json': '{}' },
    directory: 'apps/b',
    want: ['npm', 'apps/b', false],
  },
  {
    name: 'a member of a pnpm workspace',
    files: { 'r/pnpm-workspace.yaml': 'packages: ["x/**"]', 'r/package.json': '{}', 'r/pnpm-lock.yaml': '', 'r/x/y/z/package.json': '{}' },
    directory: 'r/x/y/z',
    want: ['pnpm', 'r', true],
  },
  { name: 'requirements.txt', files: { 'requirements.txt': 'pulumi>=3' }, want: ['pip', '', false] },
  { name: 'requirements.txt with hashes', files: { 'requirements.txt': 'pulumi==3 \\\n  --hash=sha256:ab' }, want: ['pip', '', true] },
  { name: 'uv.lock', files: { 'pyproject.toml': '', 'uv.lock': '' }, want: ['uv', '', true] },
  {
    name: 'a member of a uv workspace',
    files: { 'pyproject.toml': '[tool.uv.workspace]', 'uv.lock': '', 'a/pyproject.toml': '' },
    directory: 'a',
    want: ['uv', 'a', true],
  },
  { name: 'poetry.lock', files: { 'pyproject.toml': '', 'poetry.lock': '' }, want: ['poetry', '', true] },
  { name: 'a pyproject.toml of poetry', files: { 'pyproject.toml': '[tool.poetry]' }, want: ['poetry', '', false] },
  { name: 'go.mod and go.sum', files: { 'go.mod': 'module x\nrequire a v1', 'go.sum': '' }, want: ['go', '', true] },
  { name: 'go.mod without requirements', files: { 'go.mod': 'module x' }, want: undefined },
  { name: 'a vendor directory of Go', files: { 'go.mod': 'require a v1', 'vendor/modules.txt': '' }, want: undefined },
  {
    name: 'a module of a Go workspace',
    files: { 'go.work': 'use (\n ./a // app\n ./b\n)', 'a/go.mod': 'require x v1', 'a/go.sum': '', 'b/go.mod': '' },
    directory: 'a',
    want: ['go', '', true],
  },
  { name: 'Pulumi YAML', files: { 'Pulumi.yaml': '' }, want: undefined },
  {
    name: 'Python, when Node.js is there too',
    files: { 'package.json': '{}', 'requirements.txt': '' },
    more: { runtime: 'python' },
    want: ['pip', '', true],
  },
] as { name: string; files: Files; directory?: string; want?: unknown[]; more?: { manager?: ManagerName; runtime?: Runtime } }[])
  test(`detects ${name}`, async t => {
    const found = await detect(t, files, directory, more)
    deepEqual(found && [found.manager, found.root, found.isLocked], want)
  })

const workspace: Files = {
  'package.json': json({ name: 'root', workspaces: ['apps/*', 'libs/*'], dependencies: { left: '^1.0.0', tool: 'file:tools/tool' } }),
  'package-lock.json': '{"lockfileVersion":3}',
  '.npmrc': 'engine-strict=true',
  'patches/left+1.0.0.patch': 'diff',
  'apps/a/package.json': json({ name: 'a', dependencies: { shared: '*' } }),
  'apps/a/index.ts': 'a',
  'apps/b/package.json': json({ name: 'b' }),
  'apps/b/index.ts': 'b',
  'libs/shared/package.json': json({ name: 'shared', dependencies: { deep: 'link:../../tools/deep' } }),
  'libs/shared/index.ts': 'shared',
  'tools/tool/package.json': json({ name: 'tool' }),
  'tools/tool/index.js': 'tool',
  'tools/deep/index.js': 'deep',
  'README.md': 'readme',
}

for (const { path, text = 'changed', changes } of [
  { path: 'package-lock.json', changes: true },
  { path: 'package.json', text: json({ workspaces: ['apps/*', 'libs/*'], dependencies: { left: '^1.0.1' } }), changes: true },
  { path: 'apps/b/package.json', text: json({ name: 'b', version: '2.0.0' }), changes: true },
  { path: 'apps/c/package.json', text: '{}', changes: true },
  { path: '.npmrc', changes: true },
  { path: '.yarnrc.yml', changes: true },
  { path: 'patches/left+1.0.0.patch', changes: true },
  { path: 'patches/new.patch', changes: true },
  { path: 'libs/shared/index.ts', changes: true },
  { path: 'libs/shared/new.ts', changes: true },
  { path: 'tools/tool/index.js', changes: true },
  { path: 'tools/deep/index.js', changes: true },
  { path: 'apps/a/index.ts', changes: false },
  { path: 'apps/b/new.ts', changes: false },
  { path: 'README.md', changes: false },
  { path: 'libs/shared/node_modules/x/index.js', changes: false },
  { path: 'node_modules/x/index.js', changes: false },
])
  test(`a change of ${path} ${changes ? 'changes' : 'does not change'} the digest of an npm workspace`, async t => {
    const before = await detect(t, workspace, 'apps/a')
    const after = await detect(t, { ...workspace, [path]: text }, 'apps/a')
    equal(dependencyDigest(before!.inputs) !== dependencyDigest(after!.inputs), changes)
    // All members of a workspace have one tree.
    equal(dependencyDigest((await detect(t, workspace, 'apps/b'))!.inputs), dependencyDigest(before!.inputs))
  })

for (const { name, files, path } of [
  {
    name: 'any file of a package with an install script',
    files: { 'package.json': json({ scripts: { prepare: 'tsc' } }), 'package-lock.json': '', 'src/x.ts': '' },
    path: 'src/x.ts',
  },
  {
    name: 'any file of a workspace member with an install script',
    files: {
      'package.json': json({ workspaces: ['m'] }),
      'package-lock.json': '',
      'm/package.json': json({ scripts: { postinstall: 'node x' } }),
      'm/x.js': '',
    },
    path: 'm/x.js',
  },
  {
    name: 'any file of a project with a binding.gyp',
    files: { 'package.json': '{}', 'package-lock.json': '', 'binding.gyp': '{}', 'src/x.cc': '' },
    path: 'src/x.cc',
  },
  {
    name: 'any file of a workspace member with a binding.gyp',
    files: {
      'package.json': json({ workspaces: ['m'] }),
      'package-lock.json': '',
      'm/package.json': json({ scripts: { test: 'node --test' } }),
      'm/binding.gyp': '{}',
      'm/x.cc': '',
    },
    path: 'm/x.cc',
  },
  {
    name: 'a patch that pnpm names',
    files: {
      'package.json': '{}',
      'pnpm-lock.yaml': '',
      'pnpm-workspace.yaml': 'patchedDependencies: { "a@1": "my/a.patch" }',
      'my/a.patch': 'x',
    },
    path: 'my/a.patch',
  },
  {
    name: 'a plugin of yarn',
    files: { 'package.json': '{}', 'yarn.lock': '__metadata:', '.yarn/plugins/p.cjs': 'x' },
    path: '.yarn/plugins/p.cjs',
  },
  {
    name: 'a plugin of yarn elsewhere',
    files: {
      'package.json': '{}',
      'yarn.lock': '__metadata:',
      '.yarnrc.yml': 'plugins: [{ path: tools/plugin.cjs, spec: x }]',
      'tools/plugin.cjs': 'x',
    },
    path: 'tools/plugin.cjs',
  },
  {
    name: 'yarn itself at a path of its own',
    files: { 'package.json': '{}', 'yarn.lock': '__metadata:', '.yarnrc.yml': 'yarnPath: tools/yarn.cjs', 'tools/yarn.cjs': 'x' },
    path: 'tools/yarn.cjs',
  },
  {
    name: 'yarn 1 itself at a path of its own',
    files: { 'package.json': '{}', 'yarn.lock': '', '.yarnrc': 'yarn-path "./tools/yarn.js"\n', 'tools/yarn.js': 'x' },
    path: 'tools/yarn.js',
  },
  {
    name: 'a module that the hooks of pnpm load',
    files: {
      'package.json': '{}',
      'pnpm-lock.yaml': '',
      '.pnpmfile.cjs': "module.exports = { hooks: require('./tools/hooks.cjs') }",
      'tools/hooks.cjs': 'x',
    },
    path: 'tools/hooks.cjs',
  },
  {
    name: 'the hooks of pnpm in a file of another name',
    files: { 'package.json': '{}', 'pnpm-lock.yaml': '', '.npmrc': 'pnpmfile = tools/hooks.cjs', 'tools/hooks.cjs': 'module.exports = {}' },
    path: 'tools/hooks.cjs',
  },
  {
    name: 'a local override',
    files: { 'package.json': json({ overrides: { a: { b: 'file:./b' } } }), 'package-lock.json': '', 'b/index.js': '' },
    path: 'b/index.js',
  },
  { name: 'a requirements file of another', files: { 'requirements.txt': '-r more/dev.txt', 'more/dev.txt': 'a' }, path: 'more/dev.txt' },
  { name: 'a local package of pip', files: { 'requirements.txt': '-e ./lib', 'lib/setup.py': 'x' }, path: 'lib/setup.py' },
  {
    name: 'a local package of uv',
    files: { 'pyproject.toml': '', 'uv.lock': 'source = { editable = "lib" }', 'lib/x.py': 'x' },
    path: 'lib/x.py',
  },
  {
    name: 'a local package of poetry',
    files: { 'pyproject.toml': '', 'poetry.lock': '[package.source]\ntype = "directory"\nurl = "../lib"\n', x: '' },
    path: 'lib/x.py',
  },
  {
    name: 'the go.mod of a replaced module',
    files: { 'go.mod': 'require a v1\nreplace a => ./a', 'a/go.mod': 'module a' },
    path: 'a/go.mod',
  },
] as { name: string; files: Files; path: string }[])
  test(`${name} is an input`, async t => {
    const nested = path === 'lib/x.py' && 'poetry.lock' in files
    const at = (all: Files) =>
      nested ? { ...Object.fromEntries(Object.entries(all).map(([key, text]) => [`p/${key}`, text])), [path]: all[path]! } : all
    const base = nested ? { ...files, [path]: 'x' } : files
    const before = await detect(t, at(base), nested ? 'p' : '')
    const after = await detect(t, at({ ...base, [path]: 'changed' }), nested ? 'p' : '')
    notEqual(dependencyDigest(before!.inputs), dependencyDigest(after!.inputs))
  })

test('hooks of pnpm that load nothing do not make every file an input', async t => {
  const files = { 'package.json': '{}', 'pnpm-lock.yaml': '', '.pnpmfile.cjs': 'module.exports = { hooks: {} }', x: '1' }
  const [before, after] = [await detect(t, files, ''), await detect(t, { ...files, x: '2' }, '')]
  equal(dependencyDigest(before!.inputs), dependencyDigest(after!.inputs))
})

test('a yarnPath outside of the source is rejected', async t => {
  const files = { 'package.json': '{}', 'yarn.lock': '__metadata:', '.yarnrc.yml': 'yarnPath: ../yarn.cjs' }
  await rejects(detect(t, files, ''), { reason: 'InvalidConfiguration', message: /^.yarnrc.yml leads to ..\/yarn.cjs, which is outside/ })
})

test('patch-package and husky are install scripts that do not make every file an input', async t => {
  const files = { 'package.json': json({ scripts: { postinstall: 'patch-package', prepare: 'husky' } }), 'package-lock.json': '', x: '1' }
  const [before, after] = [await detect(t, files, ''), await detect(t, { ...files, x: '2' }, '')]
  equal(dependencyDigest(before!.inputs), dependencyDigest(after!.inputs))
})

test('an executable bit and the target of a symlink in a local package are inputs', async t => {
  const { source, root } = sourceOf(t, {
    'package.json': json({ dependencies: { a: 'file:a' } }),
    'package-lock.json': '',
    'a/x': '',
    'a/y': '',
  })
  const digest = async () =>
    dependencyDigest((await detectDependencies({ source: new SourceFiles(new RootDirectory(dirname(root)), root), directory: '' }))!.inputs)
  const digests = new Set([await digest()])
  symlinkSync('x', join(root, 'a/link'))
  digests.add(await digest())
  rmSync(join(root, 'a/link'))
  symlinkSync('y', join(root, 'a/link'))
  digests.add(await digest())
  equal(digests.size, 3)
  equal(await source.digest('missing'), undefined)
})

for (const { name, files, message } of [
  {
    name: 'lock files of several managers',
    files: { 'package.json': '{}', 'yarn.lock': '', 'package-lock.json': '' },
    message:
      /has lock files of several package managers \(package-lock\.json, yarn\.lock\); set packageManager in its package\.json, or remove the others/,
  },
  { name: 'a manifest that is no JSON', files: { 'package.json': '{' }, message: /package\.json cannot be read: it is not a JSON object/ },
  {
    name: 'a local dependency outside of the source',
    files: { 'package.json': json({ dependencies: { a: 'file:../../a' } }) },
    message: /a dependency of package\.json leads to \.\.\/\.\.\/a, which is outside of the source/,
  },
  {
    name: 'an absolute local dependency',
    files: { 'package.json': json({ dependencies: { a: 'file:/etc' } }) },
    message: /leads to \/etc, which is outside/,
  },
] as { name: string; files: Files; message: RegExp }[])
  test(`${name} is an invalid configuration`, async t => {
    await rejects(detect(t, files, ''), { name: 'DependencyError', reason: 'InvalidConfiguration', retryable: false, message })
  })

test('the digest does not depend on the order of inputs', () => {
  const a = { kind: 'manifest', name: 'a', value: '1' } as const
  const b = { kind: 'lockFile', name: 'b', value: '2' } as const
  equal(dependencyDigest([a, b]), dependencyDigest([b, a, a]))
  notEqual(dependencyDigest([a]), dependencyDigest([{ ...a, kind: 'lockFile' }]))
})

for (const [line, want] of [
  ['pulumi>=3,<4 # comment', [{ kind: 'package', hasHash: false }]],
  ['a==1 --hash=sha256:x', [{ kind: 'package', hasHash: true }]],
  ['-r base.txt', [{ kind: 'file', path: 'base.txt' }]],
  ['--constraint=c.txt', [{ kind: 'file', path: 'c.txt' }]],
  ['-e ./lib[extra]', [{ kind: 'local', path: './lib' }]],
  ['lib/sub', [{ kind: 'local', path: 'lib/sub' }]],
  ['wheels/x-1.whl', [{ kind: 'local', path: 'wheels/x-1.whl' }]],
  ['x @ file:./x', [{ kind: 'local', path: './x' }]],
  ['--find-links wheels', [{ kind: 'local', path: 'wheels' }]],
  ['git+https://example.com/x.git', [{ kind: 'package', hasHash: false }]],
  ['--index-url https://example.com/simple', []],
  ['# only a comment', []],
] as const)
  test(`reads the requirement ${line}`, () => deepEqual(parseRequirements(line), want))
