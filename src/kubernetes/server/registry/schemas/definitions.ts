import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sourceDirectory } from '../../../util/index.ts'

/** A type as scripts/generate-kind-schemas.ts writes it: its OpenAPI schema with plain names in `$ref`, and what OpenAPI cannot express. */
export type Definition = {
  description?: string
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  format?: string
  $ref?: string
  properties?: Record<string, Definition>
  additionalProperties?: Definition
  items?: Definition
  required?: string[]
  default?: unknown
  enum?: unknown[]
  /** Fields of scalar type that are pointers in Go: they keep a zero value, all others lose it. */
  pointers?: string[]
  /** What fields without a value are shown as, where that is neither nothing nor `default`. */
  absent?: Record<string, unknown>
  [extension: `x-kubernetes-${string}`]: unknown
}

const files = new Map<string, string>()
const parsed = new Map<string, Definition>()

/**
 * The definition of a type by its Kubernetes name, such as `io.k8s.api.core.v1.Pod`. Files are read on first use and parsed one line at a
 * time, so that a server without Pods does not pay for PodSpec.
 * @throws {Error} for a name that is not in this folder.
 */
export function definition(name: string): Definition {
  let found = parsed.get(name)
  if (found) return found
  const text = fileWith(name)
  const start = text.indexOf(`\n${JSON.stringify(name)}:`)
  if (start < 0) throw new Error(`no schema is named ${name}: run scripts/generate-kind-schemas.ts`)
  const line = text.slice(start + name.length + 4, text.indexOf('\n', start + 1))
  found = JSON.parse(line.endsWith(',') ? line.slice(0, -1) : line) as Definition
  parsed.set(name, found)
  return found
}

/** The definitions of `names` and of all types that they refer to, by name. */
export function definitionsFrom(names: Iterable<string>): Map<string, Definition> {
  const found = new Map<string, Definition>()
  const visit = (part: Definition) => {
    if (part.$ref && !found.has(part.$ref)) add(part.$ref)
    for (const child of Object.values(part.properties ?? {})) visit(child)
    if (part.items) visit(part.items)
    if (part.additionalProperties) visit(part.additionalProperties)
  }
  const add = (name: string) => {
    const whole = definition(name)
    found.set(name, whole)
    visit(whole)
  }
  for (const name of names) if (!found.has(name)) add(name)
  return found
}

function fileWith(name: string): string {
  const parts = name.split('.')
  const file = name.startsWith('io.k8s.api.') ? `${parts[3]}-${parts[4]}` : 'meta'
  let text = files.get(file)
  if (text === undefined) {
    text = readFileSync(join(sourceDirectory, 'kubernetes/server/registry/schemas', `${file}.json`), 'latin1')
    files.set(file, text)
  }
  return text
}
