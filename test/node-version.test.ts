/** What a program on an older Node gets that imports the library. On a real one: `package.slow.test.ts`. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram } from './support/run-program.ts'

const root = join(import.meta.dirname, '..')
const { engines, exports, sideEffects, peerDependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.keys(exports).filter(name => name !== './package.json')
const check = 'kubernetes/util/check-node-version'

for (const entry of entries)
  test(`oarlock${entry.slice(1)} reports a Node that is too old when it is imported`, async () => {
    const source = exports[entry].default.replace('./dist/', './src/').replace(/\.js$/, '.ts')
    // The rest of the entry would fail like this on Node 20: the check comes first.
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })
delete Promise.withResolvers`
    const { code, stderr } = await runProgram(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(old)}`, '--input-type=module', '-e', `await import('${source}')`],
      { cwd: root },
    )
    match(stderr, /^Error: oarlock requires Node\.js 24 or newer, but this is v20\.20\.2: install a newer one$/m)
    equal(code, 1)
  })

test('the versions of Node in package.json, in the check and in the launcher are the same', () => {
  equal(engines.node, '>=24')
  equal(peerDependencies['@types/node'], '>=24')
  equal(devDependencies['@types/node'].startsWith('^26.'), true)
  match(readFileSync(join(root, 'src', `${check}.ts`), 'utf8'), /^const minNodeMajor = 24$/m)
  match(readFileSync(join(root, 'bin', 'oarlock.js'), 'utf8'), /^const MIN_NODE_MAJOR = 24$/m)
  // A bundler keeps the check.
  deepEqual(sideEffects, [`./dist/${check}.js`])
})

test('each entry point imports the check before everything else', () => {
  for (const entry of entries) {
    const source = readFileSync(join(root, exports[entry].default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')), 'utf8')
    const [, first] = /^(?:import|export)\b(?:[^']*?\bfrom )? ?'([^']+)'/m.exec(source) ?? []
    match(first ?? '', /\/check-node-version\.ts$/, entry)
  }
})

test('no module of the library imports node:sqlite, which an older Node reports as missing before the check runs', () => {
  const importing = globSync(['src/kubernetes/**/*.ts', 'src/api/**/*.ts'], { cwd: root }).filter(
    file => !file.includes('.test') && /^import (?!type\b).* from 'node:sqlite'/m.test(readFileSync(join(root, file), 'utf8')),
  )
  deepEqual(importing, [])
})
