import { deepEqual, ok } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { test } from 'node:test'

const objects = ['kubernetes/util', 'kubernetes/object']
const clients = [...objects, 'kubernetes/client']
const controllers = [...clients, 'kubernetes/controller']
const execution = [
  'execution/worker',
  'execution/engine',
  'execution/pulumi-backend',
  'execution/dependencies',
  'execution/workspace',
  'stores/state',
  'stores/pulumi',
  'stores/log',
]

/** Modules of `src/` and what each may import (docs/architecture.md has the same table). Its own folder is always allowed. */
const mayImport: Record<string, readonly string[]> = {
  'kubernetes/util': [],
  'kubernetes/object': [],
  'kubernetes/cel': ['kubernetes/object'],
  'kubernetes/schema': [...objects, 'kubernetes/cel'],
  'kubernetes/apply': ['kubernetes/object'],
  'kubernetes/client': objects,
  'kubernetes/server': [...objects, 'kubernetes/schema', 'kubernetes/apply'],
  'kubernetes/controller': [...clients, 'kubernetes/schema'],
  'kubernetes/testing': [...controllers, 'kubernetes/server'],
  kubernetes: ['kubernetes/util', 'kubernetes/object', 'kubernetes/schema', 'kubernetes/apply'],
  api: ['kubernetes/util', 'kubernetes/object'],
  'stores/http': ['kubernetes/util'],
  'stores/log': ['stores/http', ...objects],
  'stores/pulumi': objects,
  'stores/state': ['stores/http', 'stores/pulumi', ...objects],
  'execution/workspace': ['api', ...objects],
  'execution/dependencies': ['execution/workspace', ...objects],
  'execution/cache': ['execution/dependencies', 'execution/workspace', ...objects],
  'execution/pulumi-backend': ['stores/http', 'stores/pulumi', ...objects],
  // Engine pulumi serves the state store to its CLI.
  'execution/engine': [
    'execution/pulumi-backend',
    'execution/dependencies',
    'execution/workspace',
    'stores/state',
    'stores/pulumi',
    'api',
    ...clients,
  ],
  'execution/worker': [
    'execution/engine',
    'execution/dependencies',
    'execution/workspace',
    'stores/state',
    'stores/log',
    'api',
    ...clients,
  ],
  'controllers/stack': ['api', ...controllers],
  'controllers/dispatch': ['api', ...controllers],
  'controllers/managed': ['api', ...controllers],
  'controllers/claims': controllers,
  'controllers/replication': controllers,
  'controllers/simulate': ['controllers/stack', 'controllers/dispatch', 'api', ...objects, 'kubernetes/schema'],
  gateway: ['api', ...clients],
  console: ['controllers/stack', 'controllers/dispatch', 'stores/state', 'stores/pulumi', 'api', ...controllers],
  app: [
    'console',
    'gateway',
    'controllers/stack',
    'controllers/dispatch',
    'controllers/claims',
    'controllers/replication',
    ...execution,
    'api',
    ...controllers,
    'kubernetes/server',
  ],
  cli: [
    'app',
    'controllers/stack',
    'controllers/dispatch',
    'controllers/simulate',
    'execution/cache',
    ...execution,
    'api',
    ...controllers,
    'kubernetes/server',
  ],
}

/**
 * Folders of `src/kubernetes/server/` and what each may import, from the top layer to the bottom (the header of its index.ts has the
 * picture). `.` is the files of the folder itself. Folders import each other through index.ts.
 */
const serverMayImport: Record<string, readonly string[]> = {
  '.': [
    'http',
    'review',
    'discovery',
    'lifecycle',
    'kubelet',
    'rest',
    'watch',
    'wire',
    'quota',
    'registry',
    'auth',
    'storage',
    'fairness',
    'metrics',
    'audit',
  ],
  http: ['review', 'discovery', 'kubelet', 'rest', 'watch', 'wire', 'registry', 'auth', 'storage', 'fairness', 'metrics', 'audit'],
  review: ['rest', 'registry', 'auth', 'storage'],
  kubelet: ['wire', 'storage'],
  lifecycle: ['rest', 'quota', 'registry', 'auth', 'storage', 'fairness'],
  rest: ['watch', 'wire', 'quota', 'registry', 'auth', 'storage', 'fairness'],
  discovery: ['wire', 'registry', 'storage'],
  watch: ['wire', 'registry', 'storage', 'fairness'],
  wire: ['registry', 'storage', 'audit'],
  quota: ['registry', 'storage'],
  registry: ['storage'],
  auth: ['storage'],
  storage: [],
  fairness: [],
  metrics: [],
  audit: ['storage'],
}

/** Folders of `src/gateway/`, as those of `src/kubernetes/server/` above. */
const gatewayMayImport: Record<string, readonly string[]> = {
  '.': ['creation', 'list', 'watch', 'routing', 'partition', 'request', 'kinds'],
  creation: ['routing', 'partition', 'request', 'kinds'],
  list: ['routing', 'partition', 'request'],
  watch: ['routing', 'partition', 'request', 'kinds'],
  routing: ['partition', 'request', 'kinds'],
  partition: ['request', 'kinds'],
  request: ['kinds'],
  kinds: [],
}

/** Entry points of a module other than its index, each with its reason. */
const entryPoints: Record<string, string> = {
  'kubernetes/util/check-node-version.ts': 'published entry points import it before everything else',
  'kubernetes/util/boot-clock.ts': 'the supervisor process must stay small: it needs a clock only',
  'kubernetes/util/worker-thread.ts': 'the supervisor process must stay small: it needs the path of a module only',
  'execution/workspace/process/index.ts': 'the supervisor process must stay small: it only starts and kills processes',
  'execution/workspace/run-directory.ts': 'the supervisor process must stay small: it removes the directories of Runs',
  'stores/state/recover-state.ts': 'the supervisor process must stay small and load nothing else of stores/state',
  'stores/state/state-copy.ts': 'a worker imports the index, and must not load the database',
  'kubernetes/util/back-up-database.ts': 'a worker imports the index, and must not load node:sqlite',
  'kubernetes/util/row-cipher.ts': 'node:crypto takes 5 ms of CPU time to load, and a one-shot worker imports the index',
  'kubernetes/object/fnv-1a.ts': 'the supervisor process must stay small: process-mark.ts needs nothing else of kubernetes/object',
  'kubernetes/object/route.ts': 'the server and the gateway read the paths of requests; kubernetes/object is published, and this is not',
  'kubernetes/server/http/listener.ts':
    'the gateway serves clients with the protocols of the server; kubernetes/server is published, and this is not',
  'kubernetes/client/http-transport.ts': 'the gateway passes requests on as they are; kubernetes/client is published, and this is not',
  'kubernetes/client/transport.ts': 'the gateway passes requests on as they are; kubernetes/client is published, and this is not',
  'kubernetes/util/root-directory.ts': 'the supervisor process must stay small: it reads the state that a lost worker left',
  'kubernetes/util/backoff.ts': 'the supervisor process must stay small: recover-state.ts needs nothing else of kubernetes/util',
}

/** Areas that are divided into modules. */
const areas = ['kubernetes', 'stores', 'execution', 'controllers']

type Import = { from: string; to: string }

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) => ({
    from: relative('src', file).split(sep).join('/'),
    to: relative('src', join(dirname(file), path as string))
      .split(sep)
      .join('/'),
  }))
}

function moduleOf(path: string): string {
  const [area, folder] = path.split('/') as [string, string]
  return areas.includes(area) && !folder.endsWith('.ts') ? `${area}/${folder}` : area
}

function violation({ from, to }: Import): string | undefined {
  const module = moduleOf(from)
  const target = moduleOf(to)
  const isTest = /\.(test|testing)\.ts$/.test(from)
  if (module === target || isTest) return undefined
  if (to.startsWith('..')) return `${from} imports ${to}, which is outside src/`
  if (mayImport[module] === undefined) return `${from}: module ${module} is not in the table of test/import-rules.test.ts`
  if (!mayImport[module].includes(target))
    return `${from} imports ${to}: ${module}/ may import ${mayImport[module].join(', ') || 'nothing'}`
  // Inside the toolkit a module may import the one file of another that it needs: a facade would load the rest.
  const isWithinKubernetes = from.startsWith('kubernetes/') && to.startsWith('kubernetes/')
  const isEntryPoint = to === `${target}/index.ts` || entryPoints[to] !== undefined
  if (!isEntryPoint && !isWithinKubernetes) return `${from} imports ${to}: import ${target}/index.ts instead`
  return undefined
}

/** Modules that are divided into layers, and what each folder may import of its module. */
const layers: Record<string, Record<string, readonly string[]>> = { 'kubernetes/server': serverMayImport, gateway: gatewayMayImport }

/** The folder of a module that a path is in; `.` for the module's own files, undefined outside of it. */
function folderOf(module: string, path: string): string | undefined {
  if (!path.startsWith(`${module}/`)) return undefined
  const [folder, file] = path.slice(module.length + 1).split('/') as [string, string | undefined]
  return file === undefined ? '.' : folder
}

function layerViolation(module: string, { from, to }: Import): string | undefined {
  const folder = folderOf(module, from)
  const target = folderOf(module, to)
  if (folder === undefined || target === undefined || folder === target || /\.(test|testing)\.ts$/.test(from)) return undefined
  const allowed = layers[module]?.[folder]
  if (allowed === undefined) return `${from}: folder ${module}/${folder} is not in the table of test/import-rules.test.ts`
  if (!allowed.includes(target))
    return `${from} imports ${to}: ${module}/${folder}/ may import ${allowed.join(', ') || `nothing of ${module}/`}`
  if (to !== `${module}/${target}/index.ts`) return `${from} imports ${to}: import ${module}/${target}/index.ts instead`
  return undefined
}

/** The first cycle among the modules of the table, if any: then "imports point down" holds for no order. */
function findCycle(table: Record<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  const visit = (module: string, path: string[]): string[] | undefined => {
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module]
    if (done.has(module)) return undefined
    for (const next of table[module] ?? []) {
      const cycle = visit(next, [...path, module])
      if (cycle) return cycle
    }
    done.add(module)
    return undefined
  }
  return Object.keys(table)
    .map(module => visit(module, []))
    .find(cycle => cycle !== undefined)
}

/**
 * Folders of `src/console/` and what each may import of it, through index.ts. The page runs in browsers: it imports nothing else of Oarlock.
 */
const consoleMayImport: Record<string, readonly string[]> = {
  '.': ['server', 'projection'],
  page: ['protocol'],
  server: ['projection', 'protocol'],
  projection: ['protocol'],
  protocol: [],
}
/** Folders of `src/console/` that may import nothing outside of it. */
const browserFolders = ['page', 'protocol']

const consoleRoot = 'console/'

function consoleFolderOf(path: string): string | undefined {
  if (!path.startsWith(consoleRoot)) return undefined
  const [folder, file] = path.slice(consoleRoot.length).split('/') as [string, string | undefined]
  return file === undefined ? '.' : folder
}

function consoleViolation({ from, to }: Import): string | undefined {
  const folder = consoleFolderOf(from)
  const target = consoleFolderOf(to)
  if (folder === undefined || folder === target || /\.(test|testing)\.ts$/.test(from)) return undefined
  const allowed = consoleMayImport[folder]
  if (allowed === undefined) return `${from}: folder console/${folder} is not in the table of test/import-rules.test.ts`
  if (target === undefined)
    return browserFolders.includes(folder)
      ? `${from} imports ${to}: console/${folder}/ runs in browsers, and imports ${allowed.map(name => `console/${name}`).join(', ') || 'nothing'}`
      : undefined
  if (!allowed.includes(target) && folder !== '.')
    return `${from} imports ${to}: console/${folder}/ may import ${allowed.join(', ') || 'nothing of console/'}`
  if (to !== `${consoleRoot}${target}/index.ts`) return `${from} imports ${to}: import console/${target}/index.ts instead`
  return undefined
}

const sources = globSync('src/**/*.{ts,tsx}')

test('every module imports only what its row in the table allows, through an entry point', () => {
  ok(sources.length > 20, `run this from the root of the checkout; found ${sources.length} files in src/`)
  deepEqual(
    sources
      .flatMap(importsOf)
      .map(violation)
      .filter(text => text !== undefined),
    [],
  )
})

test('imports point down: the table has no cycle', () => {
  deepEqual(findCycle(mayImport), undefined)
  deepEqual(findCycle({ a: ['b'], b: ['c'], c: ['b'] }), ['b', 'c', 'b'])
})

// The deciders of dispatch, what runs on a host, the server of the console and the gateway can be read one file at a time: no file needs another one that needs it.
for (const folder of ['controllers/dispatch', 'execution/worker', 'console/server', 'gateway'])
  test(`no files of ${folder}/ import each other in a cycle`, () => {
    const files = sources.filter(file => file.startsWith(join('src', ...folder.split('/'), sep)) && !file.endsWith('.test.ts'))
    const table: Record<string, string[]> = Object.fromEntries(files.map(file => [relative('src', file).split(sep).join('/'), []]))
    for (const { from, to } of files.flatMap(importsOf)) if (to.startsWith(`${folder}/`)) table[from]?.push(to)
    ok(Object.keys(table).length > 40, `${Object.keys(table).length} files`)
    ok(
      Object.keys(table).some(file => file.endsWith('.testing.ts')),
      'the models of the tests are included',
    )
    deepEqual(findCycle(table), undefined)
  })

for (const [module, table] of Object.entries(layers))
  test(`inside ${module}/, every folder imports only the layers below it, through their index.ts`, () => {
    deepEqual(
      sources
        .flatMap(importsOf)
        .map(each => layerViolation(module, each))
        .filter(text => text !== undefined),
      [],
    )
    deepEqual(findCycle(table), undefined)
    const folders = new Set(
      sources.map(file => folderOf(module, relative('src', file).split(sep).join('/'))).filter(folder => folder !== undefined),
    )
    deepEqual([...folders].sort(), Object.keys(table).sort())
    const withoutHeader = [...folders].filter(
      folder => !/^\/\*\*\n \* @module /.test(readFileSync(join('src', module, folder, 'index.ts'), 'utf8')),
    )
    deepEqual(withoutHeader, [])
  })

test('inside console/, every folder imports only what its row allows, and the page nothing but the protocol', () => {
  deepEqual(
    sources
      .flatMap(importsOf)
      .map(consoleViolation)
      .filter(text => text !== undefined),
    [],
  )
  const folders = new Set(
    sources.map(file => consoleFolderOf(relative('src', file).split(sep).join('/'))).filter(folder => folder !== undefined),
  )
  deepEqual([...folders].sort(), Object.keys(consoleMayImport).sort())
})

test('the rules report a violation', () => {
  ok(consoleViolation({ from: 'console/page/main.tsx', to: 'api/index.ts' }))
  ok(consoleViolation({ from: 'console/page/main.tsx', to: 'console/server/index.ts' }))
  ok(consoleViolation({ from: 'console/page/main.tsx', to: 'console/protocol/rows.ts' }))
  deepEqual(consoleViolation({ from: 'console/page/main.tsx', to: 'console/protocol/index.ts' }), undefined)
  ok(violation({ from: 'kubernetes/object/object.ts', to: 'kubernetes/server/index.ts' }))
  ok(violation({ from: 'kubernetes/client/client.ts', to: 'api/index.ts' }))
  ok(violation({ from: 'controllers/stack/decide-stack.ts', to: 'api/stack.ts' }))
  deepEqual(violation({ from: 'controllers/stack/decide-stack.ts', to: 'api/index.ts' }), undefined)
  ok(layerViolation('kubernetes/server', { from: 'kubernetes/server/storage/store.ts', to: 'kubernetes/server/rest/index.ts' }))
  ok(layerViolation('kubernetes/server', { from: 'kubernetes/server/rest/read.ts', to: 'kubernetes/server/storage/table.ts' }))
  deepEqual(
    layerViolation('kubernetes/server', { from: 'kubernetes/server/rest/read.ts', to: 'kubernetes/server/storage/index.ts' }),
    undefined,
  )
})

test('src/ has at most nine names, and every area and module has an index.ts that introduces it', () => {
  const names = new Set(sources.map(file => file.split(sep)[1] as string))
  ok(names.size <= 9, `src/ has ${names.size} names: ${[...names].join(', ')}`)
  const folders = new Set([...sources.map(file => moduleOf(relative('src', file).split(sep).join('/'))), ...areas])
  const silent = [...folders].filter(folder => !/^\/\*\*\n \* @module /.test(readFileSync(`src/${folder}/index.ts`, 'utf8')))
  deepEqual(silent, [])
})

/** Code that accesses directories in which programs of a Run may have left symlinks, pipes and huge files. */
const runFileCode = /^src\/(execution\/(engine|worker\/run|worker\/supervisor)\/|stores\/state\/(recover-state|stream-state-file)\.ts$)/
/** Files there that may use node:fs, each with its reason. */
const directFileAccess: Record<string, string> = {
  'src/execution/engine/find-executable.ts': 'looks for programs of the worker in its own PATH',
  'src/execution/engine/pulumi/pulumi-cli.ts': 'lists the plugins next to a program of the worker',
  'src/execution/engine/terraform/terraform-cli.ts': 'checks whether a file of the worker exists that its own environment names',
  'src/execution/worker/supervisor/connect-supervisor.ts': 'the directory of the supervisor, in which engines cannot write',
  'src/execution/worker/supervisor/reaper.ts': 'opens its own pipe in the root of a Run, in which sandboxed engines cannot write',
  'src/execution/worker/supervisor/run-directories.ts': 'lists the roots of Runs, in which sandboxed engines cannot write',
  'src/execution/worker/supervisor/supervised-worker.ts':
    'writes its records to the root of a Run, in which sandboxed engines cannot write',
  'src/execution/worker/supervisor/supervisor-client.ts': 'opens the pipe of the supervisor',
  'src/execution/worker/supervisor/supervisor-main.ts': 'the directory of the supervisor, in which engines cannot write',
  'src/execution/worker/supervisor/unsaved-states.ts': 'looks for markers in the roots of Runs, in which sandboxed engines cannot write',
  'src/stores/state/stream-state-file.ts': 'watches for changes, with lstat: the content is read through RootDirectory',
}

test('files of Runs are accessed through RootDirectory only', () => {
  const usesFs = /(from|import\(|getBuiltinModule\(|require\()\s*'(node:)?fs(\/promises)?'/
  const files = globSync('src/**/*.ts', { exclude: ['**/*.test.ts', '**/*.testing.ts'] }).map(file => file.split(sep).join('/'))
  const found = files.filter(file => runFileCode.test(file) && usesFs.test(readFileSync(file, 'utf8')))
  deepEqual(found.sort(), Object.keys(directFileAccess).sort())
  ok(usesFs.test(`import { readFile } from 'node:fs/promises'`) && usesFs.test(`process.getBuiltinModule('node:fs')`))
})

// An import reads all that node:http exports, WebSocket too, which loads undici: 50 ms and 16 MB at the start of a process or thread.
test('node:http is loaded by process.getBuiltinModule', () => {
  const isValueImport = /import\s+(?!type\b)[^'";]*from 'node:http'|import\('node:http'\)/
  const files = globSync('src/**/*.ts', { exclude: ['**/*.test.ts', '**/*.testing.ts'] })
  deepEqual(
    files.filter(file => isValueImport.test(readFileSync(file, 'utf8'))),
    [],
  )
  ok(isValueImport.test("import { createServer } from 'node:http'") && !isValueImport.test("import type { Agent } from 'node:http'"))
})
