/**
 * The vocabulary of the code base (CONTRIBUTING.md, "Names and English"): words that must not appear, each with its replacement.
 * Identifiers and file names are split into words (`tellQueue` has `tell`); strings, comments and pages are searched for phrases.
 */
import { deepEqual, ok } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseSync } from 'rolldown/utils'

/** Words of identifiers and file names. */
const words: Record<string, string> = {
  bury: 'declareLost, remove',
  buried: 'lost, removed',
  undertaker: 'LostWorkerController',
  death: 'LostWorker, exit',
  hands: 'workers',
  teller: 'reporter',
  tell: 'report, send',
  tells: 'reports',
  told: 'reported',
  say: 'format, report',
  says: 'reports, message',
  said: 'reported',
  saying: 'reporting',
  speak: 'set, report',
  voice: 'reporter',
  ward: 'supervised worker',
  keeper: 'controller',
  tidy: 'collect garbage, clean up',
  tidier: 'garbage collector',
  desk: 'service',
  doubt: 'suspect',
  doubtful: 'suspect',
  kick: 'wake',
  nudge: 'wake',
  rig: 'harness, fixture',
  misfit: 'SchemaViolation',
  departed: 'tombstone',
  stranger: 'unauthenticated, anonymous',
  strangers: 'unauthenticated connections',
  sealer: 'encryption',
  hub: 'app',
  rooms: 'modules',
  fate: 'outcome',
  promising: 'nominate',
  withhold: 'reserve',
  untaken: 'unaccepted',
  dice: 'random',
  anew: 'again',
  nobody: 'none',
  somebody: 'user',
}

/** Phrases of comments, strings and pages. */
const phrases: [pattern: RegExp, replacement: string][] = [
  [/\bpairs? of hands\b|\bbusy hands\b|\badding hands\b/i, 'worker(s)'],
  [/\bdead body\b/i, 'a holder that is proven gone'],
  [/\bwaits? no more\b/i, 'was superseded, is no longer queued'],
  [/\b(says|said|saying) so\b|\bsays? (which|how|why|what|that)\b/i, 'reports, states, explains'],
  [/\b(is|are|was|were|be|been) told\b|\btells? (of|him|them|it|the user|whoever|nobody|somebody)\b/i, 'is informed, receives, reports'],
  [/\bwho(so)?ever\b|\bnobody\b|\bsomebody\b/i, 'a client, a user, no one; name the actor'],
  [/\banew\b|\bof before\b|\bof course\b/i, 'again; previous; (delete)'],
  [/\bso many (of|for|as)\b|\bso much (of|for|as)\b/i, 'N, up to N'],
  [/\bfor ever\b/i, 'without limit, permanently'],
  [/\bthe undertaker\b|\bburied\b|\bthe teller\b|\bthis room\b|\brooms? of\b/i, 'the name in docs/architecture.md'],
  [/\bnot there yet\b/i, 'not implemented yet'],
  [/\bat once\b/i, 'immediately, concurrently'],
  [/\bhand(s|ed)? over\b/i, 'passes, transfers'],
  [/\bin good order\b/i, 'gracefully'],
  [/\bgoes on\b/i, 'continues'],
  [/\bby itself\b/i, 'automatically, alone'],
]

/** Where a word means what it says elsewhere: recorded conversations, upstream schemas, other people's programs, this table. */
const exempt = [
  /^test\/words\.test\.ts$/,
  /\/fixtures\//,
  /\/schemas\/.*\.json$/,
  /^test\/conformance\/cases\//,
  /^test\/clients\/client-go\//,
]

type Finding = string

const splitWords = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)

function inName(name: string, where: string): Finding[] {
  return splitWords(name).flatMap(word => (Object.hasOwn(words, word) ? [`${where}: ${name}: "${word}" → ${words[word]}`] : []))
}

function inText(text: string, where: (offset: number) => string): Finding[] {
  return phrases.flatMap(([pattern, replacement]) =>
    [...text.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(
      ({ index, 0: found }) => `${where(index)}: "${found}" → ${replacement}`,
    ),
  )
}

function inSource(file: string, text: string): Finding[] {
  const { program, comments } = parseSync(file, text)
  const lineOf = (offset: number) => `${file}:${text.slice(0, offset).split('\n').length}`
  const findings: Finding[] = []
  const names = new Set<string>()
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const child of node) visit(child)
      return
    }
    if (node === null || typeof node !== 'object') return
    const { type, name, value, start } = node as { type?: string; name?: unknown; value?: unknown; start?: number }
    if ((type === 'Identifier' || type === 'PrivateIdentifier') && typeof name === 'string' && !names.has(name)) {
      names.add(name)
      findings.push(...inName(name, lineOf(start ?? 0)))
    }
    if (type === 'Literal' && typeof value === 'string') findings.push(...inText(value, () => lineOf(start ?? 0)))
    if (type === 'TemplateElement') findings.push(...inText((value as { raw: string }).raw, () => lineOf(start ?? 0)))
    for (const child of Object.values(node)) if (typeof child === 'object') visit(child)
  }
  visit(program)
  for (const { value, start } of comments) findings.push(...inText(value, offset => lineOf(start + offset)))
  return findings
}

const isRead = (file: string) => !exempt.some(pattern => pattern.test(file))

test('identifiers, file names, strings and comments use the vocabulary of the code base', () => {
  const files = globSync(['{src,test,bench,examples,scripts}/**/*.{ts,tsx,mjs}']).filter(isRead)
  ok(files.length > 500, `run this from the root of the checkout; found ${files.length} files`)
  deepEqual(
    files.flatMap(file => [...inName(file, file), ...inSource(file, readFileSync(file, 'utf8'))]),
    [],
  )
})

test('pages use the vocabulary of the code base', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'bench/**/*.md', 'test/**/*.md']).filter(isRead)
  deepEqual(
    pages.flatMap(page => {
      const text = readFileSync(page, 'utf8')
      return inText(text, offset => `${page}:${text.slice(0, offset).split('\n').length}`)
    }),
    [],
  )
})

test('the check reports words in names, strings and comments', () => {
  const found = inSource('a.ts', "// nobody is told\nexport const tellQueue = 'a Run waits no more'\nclass A { #handler = 1 }")
  deepEqual(
    found.map(text => text.split(' → ')[0]),
    ['a.ts:2: tellQueue: "tell"', 'a.ts:2: "waits no more"', 'a.ts:1: "is told"', 'a.ts:1: "nobody"'],
  )
  deepEqual(splitWords('HTTPRequestRig'), ['http', 'request', 'rig'])
})
