/** Writes docs/reference/*.md from the declarations in src/api, and docs/api/*.md. `--check` only reports outdated pages. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { oarlockResources } from '../src/api/index.ts'
import type { CustomResource, StructuralSchema } from '../src/kubernetes/object/index.ts'
import { apiPages } from './api-reference.ts'

const folder = join(import.meta.dirname, '..', 'docs')

type Row = { path: string; schema: StructuralSchema; required: boolean }

function rows(schema: StructuralSchema, path: string): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const childPath = path ? `${path}.${name}` : name
    const row = { path: childPath, schema: child, required: schema.required?.includes(name) ?? false }
    const inner = child.items ?? child
    return [row, ...rows(inner, child.items ? `${childPath}[]` : childPath)]
  })
}

function typeOf(schema: StructuralSchema): string {
  if (schema.items) return `list of ${typeOf(schema.items)}`
  if (schema.enum) return schema.enum.map(value => `\`${value}\``).join(' \\| ')
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`
  return schema.type ?? 'any JSON'
}

function constraints(schema: StructuralSchema): string {
  const parts = [
    schema.default !== undefined && `default \`${JSON.stringify(schema.default)}\``,
    schema.minimum !== undefined && `≥ ${schema.minimum}`,
    schema.maximum !== undefined && `≤ ${schema.maximum}`,
    schema.minLength !== undefined && 'not empty',
    schema.minItems !== undefined && `at least ${schema.minItems}`,
    schema.pattern !== undefined && `matches \`${schema.pattern.replaceAll('|', '\\|')}\``,
  ]
  return parts.filter(Boolean).join(', ')
}

function table(schema: StructuralSchema, path: string): string {
  const lines = rows(schema, path).map(
    ({ path: field, schema: child, required }) =>
      `| \`${field}\` | ${typeOf(child)}${required ? ', required' : ''} | ${constraints(child)} | ${child.description ?? ''} |`,
  )
  return ['| field | type | constraints | description |', '|---|---|---|---|', ...lines].join('\n')
}

function page(resource: CustomResource<unknown>): string {
  const { spec, status } = resource.schema.properties as { spec: StructuralSchema; status: StructuralSchema }
  return `# ${resource.kind}

<!-- Generated from src/api by \`npm run docs\`; edit the declaration, not this page. -->

${resource.schema.description}

\`apiVersion: ${resource.apiVersion}\`, ${resource.scope === 'Cluster' ? 'cluster-scoped' : 'namespaced'}. \`oarlock get ${resource.plural}\`, \`kubectl explain ${resource.kind.toLowerCase()}.spec\`.

## spec

${table(spec, 'spec')}

## status

${table(status, 'status')}
`
}

/** Page text by path below docs/. */
function generatedPages(): Map<string, string> {
  const reference = oarlockResources.map(resource => [`reference/${resource.kind.toLowerCase()}.md`, page(resource)] as const)
  return new Map([...reference, ...[...apiPages()].map(([name, text]) => [`api/${name}`, text] as const)])
}

/** Names of the pages whose file differs from the generated text. */
export function outdatedPages(): string[] {
  return [...generatedPages()].filter(([name, text]) => readOrEmpty(join(folder, name)) !== text).map(([name]) => name)
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const outdated = outdatedPages()
    if (outdated.length > 0) {
      console.error(`docs/ is out of date: ${outdated.join(', ')}; run npm run docs`)
      process.exit(1)
    }
  } else {
    for (const [name, text] of generatedPages()) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    }
  }
}
