import { deepEqual, equal } from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { attacks } from '../bench/attack/index.ts'
import { outdatedPages } from '../scripts/generate-docs.ts'
import { readPromises } from './support/promises.ts'

test('docs/reference and docs/api are up to date with src/ (update them with npm run docs)', () => {
  deepEqual(outdatedPages(), [])
})

test('docs/api has a page with a signature of every export of each entry point', async () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, { default?: string }> }
  for (const [entry, { default: file }] of Object.entries(exports)) {
    if (file === undefined) continue
    const page = readFileSync(join('docs', 'api', `${entry.slice(2)}.md`), 'utf8')
    const documented = new Set(
      [...page.matchAll(/^### (\w+)\n(?:(?!#).*\n)*?```ts\n(?:function|class|abstract class|const|type|interface)/gm)].map(
        ([, name]) => name,
      ),
    )
    const exported = Object.keys(await import(join('..', file.replace('./dist/', 'src/').replace(/\.js$/, '.ts'))))
    deepEqual(
      exported.filter(name => !documented.has(name)),
      [],
      entry,
    )
  }
})

test('every relative link in the docs points to an existing file', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'])
  const broken = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, link]) => link as string)
      .filter(link => !existsSync(join(dirname(page), link)))
      .map(link => `${page} -> ${link}`),
  )
  deepEqual(broken, [])
})

test('every link to a heading in the docs points to an existing heading', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md']).map(page => normalize(page))
  const headings = new Map(pages.map(page => [page, headingsOf(readFileSync(page, 'utf8'))]))
  const broken = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
      .map(([, path = '', heading = '']) => ({ target: path === '' ? page : join(dirname(page), path), heading }))
      .filter(({ target, heading }) => headings.get(target)?.has(heading) === false)
      .map(({ target, heading }) => `${page} -> ${target}#${heading}`),
  )
  deepEqual(broken, [])
})

/** The anchors that GitHub derives from the headings of a page. */
function headingsOf(page: string): Set<string> {
  const lines = page.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.*)$/gm)
  const texts = [...lines].map(([, text = '']) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase())
  return new Set(texts.map(text => text.replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')))
}

test('every file path in backticks in the docs exists', () => {
  const pages = globSync(['*.md', 'bench/*.md', 'docs/**/*.md', 'examples/**/*.md', 'test/**/*.md'])
  const missing = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs|sh|md))`/g)]
      .map(([, path]) => path as string)
      .filter(path => !existsSync(path) && !existsSync(join(dirname(page), path)))
      .map(path => `${page}: ${path}`),
  )
  deepEqual(missing, [])
})

test('each promise in SECURITY.md names tests, which exist', () => {
  const rows = readFileSync('SECURITY.md', 'utf8').match(/^\| \*\*/gm)
  const promises = readPromises()
  equal(promises.length, rows?.length)
  const hasTest = ({ title, path }: { title: string; path: string }) =>
    path === 'test/attack.test.ts'
      ? attacks.some(({ name, slow }) => name === title && !slow)
      : path.endsWith('.txt')
        ? // A scenario: its file is the test, and its name the title.
          existsSync(path) && basename(path, '.txt').replaceAll('-', ' ') === title
        : existsSync(path) && titlesOf(readFileSync(path, 'utf8')).some(text => text.includes(title))
  deepEqual(
    promises.filter(({ tests }) => tests.length === 0),
    [],
  )
  deepEqual(
    promises.flatMap(({ tests }) => tests.filter(named => !hasTest(named))),
    [],
  )
})

test('each attack of the bench names a promise of SECURITY.md, and a limit that it documents', () => {
  const promises = readPromises().map(({ name }) => name)
  // Without markup and line breaks.
  const text = readFileSync('SECURITY.md', 'utf8').replace(/[`*]/g, '').replace(/\s+/g, ' ')
  deepEqual(
    attacks.filter(({ promise, limit }) => !promises.includes(promise) || (limit !== undefined && !text.includes(limit.sentence))),
    [],
  )
})

/** The first argument of each test, also if a helper adds a prefix to it. */
function titlesOf(source: string): string[] {
  return [...source.matchAll(/\b(?:test|it|describe)\(\s*(?:\w+\(\s*)?(['"`])(.*)\1/g)].map(([, , title]) => title as string)
}

test('docs/dependencies.md lists every dependency', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const text = readFileSync('docs/dependencies.md', 'utf8')
  deepEqual(
    Object.keys({ ...dependencies, ...devDependencies }).filter(name => !text.includes(`| \`${name}\` |`)),
    [],
  )
})
