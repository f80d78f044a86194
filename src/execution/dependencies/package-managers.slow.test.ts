/** Real package managers, with packages of the public registries: it needs the network, and installs the managers that the machine lacks. */
import { equal, match } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { networkProblem } from '../workspace/isolation/isolated-run.testing.ts'
import { createStore, startRun } from './install.testing.ts'
import { installDependencies } from './install-dependencies.ts'
import type { ManagerName } from './managers/package-manager.ts'

const tools = mkdtempSync(join(tmpdir(), 'oarlock-tools-'))
// For the account of sandboxed programs.
chmodSync(tools, 0o755)
after(() => rmSync(tools, { recursive: true }))
/** Some managers have certificates of their own, and would not trust a proxy that the machine trusts. */
const caFile = '/etc/ssl/certs/ca-certificates.crt'
const certificates: Record<string, string> = existsSync(caFile)
  ? { NODE_EXTRA_CA_CERTS: caFile, SSL_CERT_FILE: caFile, REQUESTS_CA_BUNDLE: caFile }
  : {}
const goDirectory = '/usr/local/go/bin'

/** Installs programs into the directory; returns why that failed. */
function obtain(command: string, args: readonly string[]): string | false {
  try {
    execFileSync(command, args, { stdio: 'pipe', timeout: 240_000, env: { ...process.env, PATH: '/usr/bin:/bin' } })
    return false
  } catch (error) {
    return `${command} ${args.join(' ')} failed: ${(error as Error).message.slice(0, 200)}`
  }
}

const npmProblem =
  networkProblem ||
  (existsSync('/usr/bin/npm')
    ? obtain('/usr/bin/npm', ['install', '--prefix', tools, '--no-audit', '--no-fund', 'pnpm@10', 'yarn@1', 'bun@1'])
    : 'needs npm in /usr/bin')
const berryTools = join(tools, 'berry')
const berryProblem =
  npmProblem || obtain('/usr/bin/npm', ['install', '--prefix', berryTools, '--no-audit', '--no-fund', '@yarnpkg/cli-dist@4'])
const pythonTools = join(tools, 'python')
const pythonProblem =
  networkProblem ||
  obtain('/usr/bin/python3', ['-m', 'venv', pythonTools]) ||
  obtain(join(pythonTools, 'bin/pip'), ['install', '--quiet', 'uv', 'poetry'])
const goProblem = networkProblem || (existsSync(join(goDirectory, 'go')) ? false : `needs go in ${goDirectory}`)

const manifest = JSON.stringify({ name: 'p', version: '1.0.0', private: true, dependencies: { 'is-odd': '3.0.1', shared: 'file:shared' } })
const nodeFiles = {
  'package.json': manifest,
  'shared/package.json': JSON.stringify({ name: 'shared', version: '1.0.0' }),
  'shared/index.js': 'module.exports = 3',
  'index.js': 'console.log(require("is-odd")(require("shared")))',
}
const nodePath = `${join(tools, 'node_modules/.bin')}:/usr/bin:/bin`
const berryPath = `${join(berryTools, 'node_modules/.bin')}:/usr/bin:/bin`
const pythonPath = `${join(pythonTools, 'bin')}:/usr/bin:/bin`
const goPath = `${goDirectory}:/usr/bin:/bin`
const pyproject = `[project]\nname = "app"\nversion = "1.0.0"\nrequires-python = ">=3.9"\ndependencies = ["six==1.17.0"]\n`

type Case = {
  manager: ManagerName
  skip: string | false
  path: string
  files: Record<string, string>
  /** Writes the lock file. */
  lock: string
  use: string
  output: RegExp
}
const node = { files: nodeFiles, use: 'node index.js', output: /^true$/ }
const cases: Case[] = [
  { ...node, manager: 'npm', skip: npmProblem, path: nodePath, lock: 'npm install --package-lock-only' },
  { ...node, manager: 'pnpm', skip: npmProblem, path: nodePath, lock: 'pnpm install --lockfile-only' },
  { ...node, manager: 'yarn', skip: npmProblem, path: nodePath, lock: 'yarn install --non-interactive && rm -r node_modules' },
  {
    ...node,
    manager: 'yarn-berry',
    skip: berryProblem,
    path: berryPath,
    files: { ...nodeFiles, '.yarnrc.yml': 'nodeLinker: node-modules\n' },
    lock: 'yarn install --mode=update-lockfile',
  },
  { ...node, manager: 'bun', skip: npmProblem, path: nodePath, lock: 'bun install --lockfile-only' },
  {
    manager: 'uv',
    skip: pythonProblem,
    path: pythonPath,
    files: { 'pyproject.toml': pyproject },
    lock: 'UV_PYTHON_DOWNLOADS=never uv lock',
    use: '.venv/bin/python -c "import six; print(six.__version__)"',
    output: /^1\.17\.0$/,
  },
  {
    // Through the index, which mirrors serve: they may lack the JSON API of pypi.org.
    manager: 'poetry',
    skip: pythonProblem,
    path: pythonPath,
    files: {
      'pyproject.toml': `${pyproject}\n[[tool.poetry.source]]\nname = "simple"\nurl = "https://pypi.org/simple/"\npriority = "primary"\n`,
    },
    lock: 'poetry lock --no-interaction',
    use: '.venv/bin/python -c "import six; print(six.__version__)"',
    output: /^1\.17\.0$/,
  },
  {
    manager: 'pip',
    skip: pythonProblem,
    path: pythonPath,
    files: { 'requirements.txt': 'six==1.17.0\nnormalizer-none; python_version < "2"\npygments==2.19.1\n' },
    lock: 'true',
    use: '.venv/bin/python -c "import six; print(six.__version__)" && .venv/bin/pygmentize -V',
    output: /^1\.17\.0\n.*2\.19\.1/,
  },
  {
    manager: 'go',
    skip: goProblem,
    path: goPath,
    files: {
      'go.mod': 'module example.com/app\n\ngo 1.24\n\nrequire github.com/pkg/errors v0.9.1\n',
      'main.go': 'package main\n\nimport (\n\t"fmt"\n\t"github.com/pkg/errors"\n)\n\nfunc main() { fmt.Println(errors.New("built")) }\n',
    },
    lock: 'GOFLAGS=-mod=mod go mod tidy',
    use: 'GOPROXY=off go run .',
    output: /^built$/,
  },
]

for (const { manager, skip, path, files, lock, use, output } of cases) {
  test(`${manager} installs a project with its lock file, and another Run uses the tree without the network`, { skip }, async t => {
    const store = createStore()
    const options = { level: 'Sandbox', store, env: { PATH: path, ...certificates }, readable: [tools] } as const
    const author = await startRun(t, { ...options, network: 'Private', files })
    const locked = await author.run(lock, undefined, { PATH: path, ...certificates })
    equal(locked.exitCode, 0, locked.lines.join('\n'))
    const withLock: Record<string, string> = {}
    for (const { name, kind } of await author.directory.files.list(author.directory.work)) {
      if (kind === 'file')
        withLock[name] = (await author.directory.files.readText(join(author.directory.work, name), { maxBytes: 2 ** 24 }))!
    }
    for (const how of ['Installed', 'Cached']) {
      const network = how === 'Installed' ? 'Private' : 'None'
      const run = await startRun(t, { ...options, network, files: { ...files, ...withLock } })
      const result = await installDependencies(run.context, { directory: run.directory.work }).catch(error => {
        throw new Error(`${error.message}\n${run.log.join('\n')}`, { cause: error })
      })
      equal(result?.manager, manager)
      equal(result.source, how)
      const used = await run.run(use, undefined, { PATH: path, ...result.env })
      match(used.lines.join('\n'), output)
    }
  })
}
