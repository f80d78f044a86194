/** The build of the console's page: its size, its compressed files, and that it works under a strict Content-Security-Policy. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { pagePath } from '../src/console/protocol/index.ts'

const repository = join(import.meta.dirname, '..')
const directory = realpathSync(mkdtempSync(join(tmpdir(), 'oarlock-console-')))
after(() => rmSync(directory, { recursive: true, force: true }))

/** HTML, scripts and style of the first page, compressed with Brotli. */
const maxFirstPageBytes = 60 * 1024

const { buildConsole, buildCheckoutConsole } = (await import(join(repository, 'scripts', 'build-console.mjs'))) as {
  buildConsole(root: string, outdir: string): Promise<string[]>
  buildCheckoutConsole(root: string): Promise<void>
}

type Manifest = {
  readonly files: Readonly<
    Record<string, { readonly type: string; readonly hash: string; readonly bytes: number; readonly brBytes: number }>
  >
  readonly first: readonly string[]
}
const out = join(directory, 'out')
const read = (path: string) => readFileSync(join(out, path))
let manifest: Manifest

before(async () => {
  await buildConsole(repository, out)
  manifest = JSON.parse(read('manifest.json').toString()) as Manifest
})

test('the first page is at most 60 KB compressed, and the library of charts is not part of it', () => {
  const bytes = manifest.first.reduce((sum, path) => sum + read(`${path}.br`).length, 0)
  ok(bytes > 10_000 && bytes <= maxFirstPageBytes, `${bytes} bytes, at most ${maxFirstPageBytes}`)
  const withCharts = Object.keys(manifest.files).filter(path => path.endsWith('.js') && read(path).includes('uplot'))
  equal(withCharts.length, 1)
  ok(!manifest.first.includes(withCharts[0] as string))
})

test('the manifest lists every file with its hash and sizes; the compressed files have the same content', () => {
  const written = globSync('**/*.{html,js,css,svg}', { cwd: out })
  deepEqual(Object.keys(manifest.files).sort(), written.sort())
  for (const [path, { type, hash, bytes, brBytes }] of Object.entries(manifest.files)) {
    const body = read(path)
    equal(createHash('sha256').update(body).digest('hex'), hash, path)
    deepEqual([body.length, read(`${path}.br`).length], [bytes, brBytes], path)
    ok(brotliDecompressSync(read(`${path}.br`)).equals(body) && gunzipSync(read(`${path}.gz`)).equals(body), path)
    ok(type.length > 0, path)
    if (path !== 'index.html') match(path, /^assets\/[\w.-]+-[\w-]{8}\.(js|css|svg)$/)
  }
})

test('the page has no inline script and no inline style, and loads only its own assets', () => {
  const html = read('index.html').toString()
  ok(!/<style|\sstyle=|\son\w+=|javascript:/i.test(html))
  deepEqual(
    [...html.matchAll(/<script([^>]*)>(.*?)<\/script>/gs)].map(([, , text]) => text),
    [''],
  )
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link as string)
  ok(links.length >= 3)
  for (const link of links) {
    ok(link.startsWith(`${pagePath}assets/`), link)
    ok(manifest.files[link.slice(pagePath.length)], link)
  }
  for (const path of Object.keys(manifest.files).filter(path => path.endsWith('.js')))
    ok(!/\beval\(|new Function\(/.test(read(path).toString()), `${path} evaluates text, which the policy forbids`)
})

test('a checkout builds the page once, again when a source has changed, and again when a style sheet was added', async () => {
  const root = join(directory, 'checkout')
  mkdirSync(join(root, 'node_modules'), { recursive: true })
  cpSync(join(repository, 'src', 'console'), join(root, 'src', 'console'), { recursive: true })
  cpSync(join(repository, 'tsconfig.json'), join(root, 'tsconfig.json'))
  mkdirSync(join(root, 'scripts'))
  writeFileSync(join(root, 'scripts', 'build-console.mjs'), '')
  writeFileSync(join(root, 'package-lock.json'), '{}')
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  for (const name of ['preact', '@preact', 'uplot']) symlinkSync(join(repository, 'node_modules', name), join(root, 'node_modules', name))
  const cache = join(root, 'node_modules', '.cache', 'oarlock')
  const builds = () => readdirSync(cache).filter(name => name.startsWith('console-')).length
  const current = () => (JSON.parse(readFileSync(join(cache, 'console.json'), 'utf8')) as { directory: string }).directory
  await buildCheckoutConsole(root)
  const first = current()
  ok(readdirSync(join(cache, first)).includes('manifest.json'))
  await buildCheckoutConsole(root)
  deepEqual([builds(), current()], [1, first])
  const theme = join(root, 'src', 'console', 'page', 'theme.ts')
  writeFileSync(theme, `${readFileSync(theme, 'utf8')}\nexport const changed = 1\n`)
  await buildCheckoutConsole(root)
  equal(builds(), 2)
  writeFileSync(join(root, 'src', 'console', 'page', 'styles', '9-more.css'), '.more { color: red }')
  await buildCheckoutConsole(root)
  equal(builds(), 3)
  const sheet = readdirSync(join(cache, current(), 'assets')).find(name => name.endsWith('.css')) as string
  ok(readFileSync(join(cache, current(), 'assets', sheet), 'utf8').includes('.more{color:red}'))
})
