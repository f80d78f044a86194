/**
 * Writes src/kubernetes/server/registry/schemas/*.json: the types of the served built-in kinds, one definition per line.
 * What clients see of a type (fields, formats, list types, patch strategies, descriptions) comes from the OpenAPI v3 documents of a real
 * kube-apiserver (scripts/build-peers.sh). OpenAPI does not state whether a field is a pointer in Go and so keeps its zero value; this is
 * read from the struct tags of the modules that kube-apiserver was built from.
 * Run: node scripts/generate-kind-schemas.ts [--check]
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kindDeclarations } from '../src/kubernetes/server/registry/kinds/index.ts'
import { startPeer } from '../test/conformance/peer.ts'
import { sendRequest } from '../test/conformance/target.ts'

const folder = join(import.meta.dirname, '..', 'src', 'kubernetes', 'server', 'registry', 'schemas')
const staging = 'v0.36.3'

/** Types of virtual kinds and subresources, which no declaration names. */
const virtualKinds = [
  'io.k8s.api.authentication.v1.SelfSubjectReview',
  'io.k8s.api.authentication.v1.TokenRequest',
  'io.k8s.api.authentication.v1.TokenReview',
  'io.k8s.api.authorization.v1.LocalSubjectAccessReview',
  'io.k8s.api.authorization.v1.SelfSubjectAccessReview',
  'io.k8s.api.authorization.v1.SelfSubjectRulesReview',
  'io.k8s.api.authorization.v1.SubjectAccessReview',
  'io.k8s.api.autoscaling.v1.Scale',
  'io.k8s.api.core.v1.Binding',
  'io.k8s.api.policy.v1.Eviction',
]

type Schema = { [key: string]: unknown; properties?: Record<string, Schema>; items?: Schema; additionalProperties?: Schema | boolean }
type GoField = { type: string; isPointer: boolean; omitsEmpty: boolean }
type GoStruct = { fields: Map<string, GoField>; embedded: string[] }

const prefix = '#/components/schemas/'
const api = 'io.k8s.api.'
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.'

/** Types with a JSON form of their own: the value of a missing field, although the Go type is not a pointer. */
const zeroValues: Record<string, unknown> = {
  'metav1.Time': null,
  'metav1.MicroTime': null,
  'resource.Quantity': '0',
  'intstr.IntOrString': 0,
}

/** About the length that `kubectl explain` shows without scrolling, per field. */
const maxDescription = 260

const published = await fetchSchemas()
const moduleDirectories = new Map<string, string>()
const goDirectories = new Map<string, Map<string, GoStruct>>()
async function fetchSchemas(): Promise<Record<string, Schema>> {
  const peer = await startPeer()
  try {
    const get = async (path: string): Promise<unknown> => {
      const { code, text } = await sendRequest(peer, { method: 'GET', path, headers: { authorization: `Bearer ${peer.tokens.admin}` } })
      if (code !== 200) throw new Error(`GET ${path}: ${code} ${text.slice(0, 200)}`)
      return JSON.parse(text)
    }
    const { paths } = (await get('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> }
    const all: Record<string, Schema> = {}
    for (const { serverRelativeURL } of Object.values(paths)) {
      const document = (await get(serverRelativeURL)) as { components?: { schemas?: Record<string, Schema> } }
      Object.assign(all, document.components?.schemas)
    }
    return all
  } finally {
    await peer.close()
  }
}

function reachable(from: readonly string[]): string[] {
  const seen = new Set<string>()
  const visit = (name: string) => {
    if (seen.has(name)) return
    seen.add(name)
    const schema = published[name]
    if (!schema) throw new Error(`kube-apiserver publishes no ${name}`)
    JSON.stringify(schema, (key, value) => {
      if (key === '$ref') visit(value.slice(prefix.length))
      return value
    })
  }
  for (const name of from) visit(name)
  return [...seen].sort()
}

/** `core-v1` for io.k8s.api.core.v1.Pod; one file for the types that all groups share. */
function fileOf(name: string): string {
  if (!name.startsWith(api)) return 'meta'
  const [group, version] = name.slice(api.length).split('.')
  return `${group}-${version}`
}

function compact(name: string): Schema {
  const schema = published[name]!
  const { description, properties, ...rest } = schema
  const result: Schema = { ...shortened(description), ...withReferences(rest) }
  if (!properties) return sorted(result)
  const struct = name.startsWith(api) || name.startsWith(meta) ? goStruct(name) : undefined
  const pointers: string[] = []
  const absent: Record<string, unknown> = {}
  result.properties = {}
  for (const field of Object.keys(properties).sort()) {
    result.properties[field] = property(properties[field]!)
    const go = struct?.fields.get(field)
    if (!go || field === 'apiVersion' || field === 'kind') continue
    // A field that is omitted when it is zero needs no zero default.
    if (go.omitsEmpty && !go.isPointer && isZero(result.properties[field].default)) delete result.properties[field].default
    if (go.isPointer && go.omitsEmpty) {
      if (isScalar(properties[field]!, go.type)) pointers.push(field)
    } else if (!go.isPointer && Object.hasOwn(zeroValues, go.type)) absent[field] = zeroValues[go.type]
    else if (
      !go.omitsEmpty &&
      properties[field]!.default === undefined &&
      (go.isPointer || go.type.startsWith('[') || go.type.startsWith('map['))
    )
      absent[field] = null
    else if (!go.omitsEmpty && isNamedList(properties[field]!)) absent[field] = null
  }
  if (pointers.length > 0) result.pointers = pointers
  if (Object.keys(absent).length > 0) result.absent = absent
  return sorted(result)
}

const isZero = (value: unknown) => value === '' || value === 0 || value === false

/** Only pointers to scalars are recorded: a struct that is present is never omitted. */
function isScalar({ type }: Schema, goType: string): boolean {
  return (type !== undefined && type !== 'array' && type !== 'object') || Object.hasOwn(zeroValues, goType)
}

// A named list or map, such as ResourceList.
function isNamedList({ type }: Schema): boolean {
  return type === 'array' || type === 'object'
}

function property({ description, ...schema }: Schema): Schema {
  return sorted({ ...shortened(description), ...withReferences(schema) })
}

/** Replaces references by type names, without the prefix of the OpenAPI version and the surrounding allOf. */
function withReferences(schema: Schema): Schema {
  const result: Schema = {}
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'allOf') result.$ref = (value as { $ref: string }[])[0]!.$ref.slice(prefix.length)
    else if (key === '$ref') result.$ref = String(value).slice(prefix.length)
    else if (key === 'items' || (key === 'additionalProperties' && typeof value === 'object')) result[key] = property(value as Schema)
    else result[key] = value
  }
  return result
}

/** The first sentences of a description. */
function shortened(description: unknown): { description?: string } {
  if (typeof description !== 'string' || description === '') return {}
  const [paragraph = ''] = description.split(/\n\s*\n/)
  const text = paragraph.replace(/\s+/g, ' ').trim()
  if (text.length <= maxDescription) return { description: text }
  let short = ''
  for (const sentence of text.match(/.+?[.!?](?=\s+[A-Z`"'(]|$)\s*|.+$/g) ?? [text]) {
    if (short !== '' && short.length + sentence.length > maxDescription) break
    short += sentence
  }
  return { description: short.trim() }
}

function sorted(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The Go struct of a definition, with the fields of its embedded structs. */
function goStruct(name: string): GoStruct | undefined {
  const parts = name.split('.')
  const typeName = parts.at(-1)!
  const directory = name.startsWith(meta)
    ? join(moduleDirectory('k8s.io/apimachinery'), 'pkg', 'apis', 'meta', 'v1')
    : join(moduleDirectory('k8s.io/api'), ...parts.slice(3, -1))
  return flattened(directory, typeName)
}

function flattened(directory: string, typeName: string): GoStruct | undefined {
  const structs = structsOf(directory)
  const struct = structs.get(typeName)
  if (!struct) return undefined
  const fields = new Map(struct.fields)
  for (const embedded of struct.embedded) {
    const [name, from] = embedded.includes('.') ? [embedded.split('.')[1]!, embedded.split('.')[0]!] : [embedded, '']
    const inner =
      from === 'metav1'
        ? flattened(join(moduleDirectory('k8s.io/apimachinery'), 'pkg', 'apis', 'meta', 'v1'), name)
        : flattened(directory, name)
    for (const [field, facts] of inner?.fields ?? []) if (!fields.has(field)) fields.set(field, facts)
  }
  return { fields, embedded: [] }
}

function structsOf(directory: string): Map<string, GoStruct> {
  let structs = goDirectories.get(directory)
  if (structs) return structs
  structs = new Map()
  for (const file of readdirSync(directory)) {
    if (!file.endsWith('types.go') || file.startsWith('zz_')) continue
    const source = readFileSync(join(directory, file), 'utf8')
    for (const [, typeName, body] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
      const struct: GoStruct = { fields: new Map(), embedded: [] }
      for (const line of body!.split('\n')) {
        const [, pointer, type, tag] = /^\t(?:\w+\s+)?(\*?)([\w.[\]*{}]+)\s+`.*?json:"([^"]*)"/.exec(line) ?? []
        if (tag === undefined || type === undefined) continue
        const [jsonName, ...options] = tag.split(',')
        if (options.includes('inline')) struct.embedded.push(type)
        else if (jsonName) {
          const omitsEmpty = options.includes('omitempty') || options.includes('omitzero')
          struct.fields.set(jsonName, { type, isPointer: pointer === '*', omitsEmpty })
        }
      }
      structs.set(typeName!, struct)
    }
  }
  goDirectories.set(directory, structs)
  return structs
}

function moduleDirectory(module: string): string {
  let directory = moduleDirectories.get(module)
  if (directory === undefined) {
    const { Dir } = JSON.parse(
      execFileSync('go', ['mod', 'download', '-json', `${module}@${staging}`], { cwd: '/', encoding: 'utf8' }),
    ) as { Dir: string }
    directory = Dir
    moduleDirectories.set(module, directory)
  }
  return directory
}

/** A string with one byte per character takes half of the memory. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function write(): void {
  const isCheck = process.argv.includes('--check')
  let bytes = 0
  const stale: string[] = []
  for (const [file, lines] of files) {
    const text = `{\n${lines.join(',\n')}\n}\n`
    bytes += text.length
    const path = join(folder, `${file}.json`)
    if (isCheck) {
      if (!existsSync(path) || readFileSync(path, 'utf8') !== text) stale.push(path)
    } else writeFileSync(path, text)
  }
  for (const file of readdirSync(folder)) {
    if (file.endsWith('.json') && !files.has(file.slice(0, -5))) isCheck ? stale.push(join(folder, file)) : rmSync(join(folder, file))
  }
  if (stale.length > 0) {
    console.error(`out of date: ${stale.join(', ')}. Run node scripts/generate-kind-schemas.ts`)
    process.exit(1)
  }
  console.log(`${files.size} files, ${[...files.values()].flat().length} definitions, ${Math.round(bytes / 1024)} KiB`)
}

const roots = [...kindDeclarations.flatMap(({ typeName }) => typeName ?? []), ...virtualKinds]
const files = new Map<string, string[]>()
for (const name of reachable(roots)) {
  const file = fileOf(name)
  const lines = files.get(file) ?? []
  lines.push(`${JSON.stringify(name)}:${asciiJson(compact(name))}`)
  files.set(file, lines)
}
write()
