/** Pages docs/api/*.md: every export of the package's entry points with its signature, from the declarations that the package has. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')

/** What TypeScript writes for one top-level statement of a declaration file. */
type Declaration = { name: string; kind: string; doc: string; text: string }
/** A name that a file exports from another one; `name` is `*` for all names. */
type Reexport = { name: string; as: string; from: string }
type DeclarationFile = { declarations: Declaration[]; reexports: Reexport[] }

const sections = [
  ['function', 'Functions'],
  ['class', 'Classes'],
  ['const', 'Constants'],
  ['type', 'Types'],
] as const

const guides: Record<string, string> = {
  controller: '[The controller library](../controller-library.md) explains the concepts, options and metrics.',
  managed: '[Managed resources](../managed.md) explains the concepts, options and annotations.',
  server: '[The embedded server](../embedded-server.md) explains the concepts, limits and data.',
  api: '[docs/reference](../reference/stack.md) describes the fields of each kind.',
}

/** Page text by file name. */
export function apiPages(): Map<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, { types?: string }> }
  const entries = Object.entries(exports).flatMap(([name, { types }]) => (types === undefined ? [] : [{ name: name.slice(2), types }]))
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-api-'))
  try {
    emitDeclarations(
      directory,
      entries.map(({ types }) => types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')),
    )
    const read = declarationReader()
    return new Map(entries.map(({ name, types }) => [`${name}.md`, page(name, join(directory, types.replace('./dist/', '')), read)]))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function emitDeclarations(directory: string, sources: string[]): void {
  const config = join(directory, 'tsconfig.json')
  const compilerOptions = { emitDeclarationOnly: true, noCheck: true, rootDir: join(root, 'src'), outDir: directory }
  const typeRoots = [join(root, 'node_modules', '@types')]
  const settings = { extends: join(root, 'tsconfig.build.json'), compilerOptions: { ...compilerOptions, typeRoots } }
  writeFileSync(config, JSON.stringify({ ...settings, include: [], files: sources.map(path => join(root, path)) }))
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', config], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`tsc failed: ${stdout}`)
}

function declarationReader(): (path: string) => DeclarationFile {
  const files = new Map<string, DeclarationFile>()
  return path => {
    const known = files.get(path) ?? parseDeclarations(readFileSync(path, 'utf8'), dirname(path))
    files.set(path, known)
    return known
  }
}

/** TypeScript begins each top-level statement, and its comment, at the start of a line. */
export function parseDeclarations(text: string, directory: string): DeclarationFile {
  const file: DeclarationFile = { declarations: [], reexports: [] }
  let doc = ''
  for (const part of text.split(/^(?=\/\*\*|(?:export|declare|import)\b)/m)) {
    if (part.startsWith('/**')) {
      doc = part
      continue
    }
    const [, names, all, from = ''] = /^export (?:type )?(?:\{([^}]*)\}|(\*)) from '(\.[^']+)'/.exec(part) ?? []
    const path = join(directory, from.replace(/\.[jt]s$/, '.d.ts'))
    if (all) file.reexports.push({ name: '*', as: '*', from: path })
    for (const item of (names ?? '').split(',')) {
      const [name = '', as = name] = item
        .trim()
        .replace(/^type /, '')
        .split(' as ')
      if (name !== '') file.reexports.push({ name, as, from: path })
    }
    const [, keyword = '', name] = /^export (?:declare )?(?:abstract )?(type|interface|const|function|class) (\w+)/.exec(part) ?? []
    if (name !== undefined) file.declarations.push({ name, kind: keyword === 'interface' ? 'type' : keyword, doc, text: part.trim() })
    doc = ''
  }
  return file
}

/** What `name` is, wherever the file has it from; several declarations if it is overloaded. */
function find(path: string, name: string, read: (path: string) => DeclarationFile): Declaration[] {
  const { declarations, reexports } = read(path)
  const own = declarations.filter(declaration => declaration.name === name)
  if (own.length > 0) return own
  for (const { name: original, as, from } of reexports) {
    const found = as === name ? find(from, original, read) : as === '*' ? find(from, name, read) : []
    if (found.length > 0) return found.map(declaration => ({ ...declaration, name }))
  }
  return []
}

function exportedNames(path: string, read: (path: string) => DeclarationFile): string[] {
  const { declarations, reexports } = read(path)
  const others = reexports.flatMap(({ as, from }) => (as === '*' ? exportedNames(from, read) : [as]))
  return [...new Set([...declarations.map(({ name }) => name), ...others])]
}

function page(entry: string, path: string, read: (path: string) => DeclarationFile): string {
  const [, purpose = ''] = /@module [\w/]+: (.*?)\.\s/s.exec(readFileSync(path, 'utf8')) ?? []
  const found = exportedNames(path, read).map(name => {
    const declarations = find(path, name, read)
    if (declarations.length === 0) throw new Error(`no declaration of ${name} in ${relative(root, path)}`)
    return declarations
  })
  const lines = [`# oarlock/${entry}`, '', '<!-- Generated from src/ by `npm run docs`; edit the source, not this page. -->', '']
  const sentence = purpose.replace(/\s*\n \* /g, ' ').replace(/, (?:the library|which can be used) .*/, '')
  lines.push(`${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.${guides[entry] ? ` ${guides[entry]}` : ''}`, '')
  for (const [kind, title] of sections) {
    const items = found.filter(([first]) => first?.kind === kind).toSorted(byName)
    if (items.length === 0) continue
    lines.push(`## ${title}`, '')
    for (const declarations of items) lines.push(...format(declarations))
  }
  return `${lines.join('\n').trimEnd()}\n`
}

function byName([a]: Declaration[], [b]: Declaration[]): number {
  const [x, y] = [a?.name ?? '', b?.name ?? '']
  return x < y ? -1 : x > y ? 1 : 0
}

function format(declarations: Declaration[]): string[] {
  const docs = declarations.map(({ doc }) => formatDoc(doc)).filter(text => text !== '')
  const code = declarations.map(({ text }) => formatSignature(text))
  return [`### ${declarations[0]?.name}`, '', ...docs.flatMap(text => [text, '']), '```ts', ...code, '```', '']
}

function formatDoc(comment: string): string {
  return comment
    .replace(/^\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .replace(/(\s*)@throws (?:\{(\w+)\})?/g, (_, space, type) => `${space}Throws${type ? ` \`${type}\`` : ''}`)
    .replace(/@param (\w+)/g, '`$1`:')
    .trim()
}

function formatSignature(text: string): string {
  return text
    .replace(/^export (?:declare )?/, '')
    .replace(/\bimport\("[^"]+"\)\./g, '')
    .replace(/^ {4}(?:#private|private .*);\n/gm, '')
    .replace(/^ +/gm, spaces => ' '.repeat(spaces.length / 2))
}
