import { deepEqual, ok } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { test } from 'node:test'

/** What each room may import from (docs/architecture.md draws the same table). Its own folder is always allowed. */
const mayImport: Record<string, readonly string[]> = {
  kube: [],
  server: ['kube'],
  client: ['kube'],
  controller: ['client', 'kube'],
  testing: ['server', 'controller', 'client', 'kube'],
  api: ['kube'],
  'store-http': [],
  log: ['store-http', 'kube'],
  state: ['store-http', 'kube'],
  workspace: ['kube'],
  engine: ['client', 'workspace', 'kube'],
  worker: ['client', 'engine', 'workspace', 'state', 'log', 'api', 'kube'],
  dispatch: ['controller', 'api', 'kube'],
  stack: ['controller', 'api', 'kube'],
  simulate: ['stack', 'dispatch', 'api', 'kube'],
  hub: ['stack', 'dispatch', 'worker', 'engine', 'workspace', 'state', 'log', 'api', 'controller', 'client', 'server', 'kube'],
  cli: [
    'hub',
    'simulate',
    'stack',
    'dispatch',
    'worker',
    'engine',
    'workspace',
    'state',
    'log',
    'api',
    'controller',
    'client',
    'server',
    'kube',
  ],
}

/** Doors of a room other than its index, each with its reason. */
const sideDoors: Record<string, string> = {
  'workspace/process/index.ts': 'the guard process must stay light: a door of its own for what starts and kills processes',
  'workspace/run-directory.ts': 'the guard process must stay light: it removes the directories of Runs',
  'state/salvage.ts': 'the guard process must stay light and load nothing else of state/',
}

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

function violation({ from, to }: Import): string | undefined {
  const room = from.split('/')[0] as string
  const target = to.split('/')[0] as string
  const isTest = /\.(test|testing)\.ts$/.test(from)
  if (room === target) return undefined
  if (to.startsWith('..')) return isTest ? undefined : `${from} imports ${to}, which is outside src/`
  if (isTest) return undefined
  if (mayImport[room] === undefined) return `${from}: room ${room} is not in the table of test/import-rules.test.ts`
  if (!mayImport[room].includes(target)) return `${from} imports ${to}: ${room}/ may import ${mayImport[room].join(', ') || 'nothing'}`
  const isIndex = to === `${target}/index.ts`
  if (!isIndex && sideDoors[to] === undefined) return `${from} imports ${to}: import ${target}/index.ts instead`
  return undefined
}

test('every room imports only what its row in the table allows, and only through index.ts', () => {
  const files = globSync('src/**/*.ts')
  ok(files.length > 20, `run this from the root of the checkout; found ${files.length} files in src/`)
  deepEqual(
    files
      .flatMap(importsOf)
      .map(violation)
      .filter(text => text !== undefined),
    [],
  )
})

test('the rules see a violation', () => {
  ok(violation({ from: 'kube/object.ts', to: 'server/index.ts' }))
  ok(violation({ from: 'stack/decide-stack.ts', to: 'api/stack.ts' }))
  deepEqual(violation({ from: 'stack/decide-stack.ts', to: 'api/index.ts' }), undefined)
})

test('every room has an index.ts that introduces it', () => {
  const silent = Object.keys(mayImport).filter(room => !/^\/\*\*\n \* @module /.test(readFileSync(`src/${room}/index.ts`, 'utf8')))
  deepEqual(
    silent.filter(room => room !== 'cli'),
    [],
  )
})

// An import reads all that node:http exports, WebSocket too, which loads undici: 50 ms and 16 MB at the start of a process or thread.
test('node:http is taken by process.getBuiltinModule', () => {
  const isValueImport = /import\s+(?!type\b)[^'";]*from 'node:http'|import\('node:http'\)/
  const files = globSync('src/**/*.ts', { exclude: ['**/*.test.ts', '**/*.testing.ts'] })
  deepEqual(
    files.filter(file => isValueImport.test(readFileSync(file, 'utf8'))),
    [],
  )
  ok(isValueImport.test("import { createServer } from 'node:http'") && !isValueImport.test("import type { Agent } from 'node:http'"))
})
