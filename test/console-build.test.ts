/** The page of the console as browsers get it: small, compressed, and without anything that a strict content security policy rejects. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const outdir = mkdtempSync(join(tmpdir(), 'oarlock-console-'))
after(() => rmSync(outdir, { recursive: true, force: true }))

const { buildConsole } = (await import(join(root, 'scripts', 'build-console.mjs'))) as {
  buildConsole(root: string, outdir: string): Promise<string[]>
}
const sources = await buildConsole(root, outdir)
const { files } = JSON.parse(readFileSync(join(outdir, 'manifest.json'), 'utf8')) as {
  files: Record<string, { type: string; bytes: number; brBytes: number }>
}
const html = readFileSync(join(outdir, 'index.html'), 'utf8')

/** Page, style and scripts that a browser loads before it shows the first page. */
const firstPage = ['index.html', ...[...html.matchAll(/(?:src|href)="\/console\/(assets\/[^"]+)"/g)].map(([, path]) => path as string)]
const maxFirstPageBytes = 60 * 1024

test('the first page is at most 60 KB compressed, and the pages of objects are not part of it', () => {
  ok(firstPage.some(path => path.endsWith('.js')) && firstPage.some(path => path.endsWith('.css')), firstPage.join())
  const bytes = firstPage.reduce((sum, path) => sum + files[path]!.brBytes, 0)
  ok(bytes > 10_000 && bytes <= maxFirstPageBytes, `${bytes} bytes`)
  ok(Object.keys(files).some(path => path.startsWith('assets/object-page-') && !firstPage.includes(path)))
})

test('every file is stored as it is and compressed, and assets have hashed names', () => {
  for (const [path, { bytes, brBytes }] of Object.entries(files)) {
    const plain = readFileSync(join(outdir, path))
    equal(plain.length, bytes, path)
    const br = readFileSync(join(outdir, `${path}.br`))
    equal(br.length, brBytes, path)
    deepEqual(brotliDecompressSync(br), plain)
    deepEqual(gunzipSync(readFileSync(join(outdir, `${path}.gz`))), plain)
    if (path !== 'index.html') match(path, /^assets\/[\w-]+-[\w-]{8}\.(js|css|svg)$/)
  }
})

test('the page has no inline scripts and styles', () => {
  doesNotMatch(html, /<style|style=|<script(?![^>]* src=)|\son\w+=/)
})

test('the sources of the build exist, so that a change of one is noticed', () => {
  ok(sources.includes('src/console/page/main.tsx') && sources.includes('src/console/page/styles/base.css'))
  deepEqual(
    sources.filter(path => !existsSync(join(root, path))),
    [],
  )
})
