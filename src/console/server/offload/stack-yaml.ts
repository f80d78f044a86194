import { type Document, isMap, isSeq, LineCounter, parseDocument } from 'yaml'
import { type Stack, stackResource } from '../../../api/index.ts'
import { isJsonObject, type KubeObject, type Status } from '../../../kubernetes/object/index.ts'
import { parseUntrustedYaml, stringifyYaml, YamlError } from '../../../kubernetes/util/index.ts'
import type { YamlProblem } from '../../protocol/index.ts'

/** What users write of a Stack: without its status, and without what only the server sets. */
export function stackYaml({ metadata, spec }: Pick<Stack, 'metadata' | 'spec'>): string {
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata
  const { apiVersion, kind } = stackResource
  const written = {
    ...{ name, namespace },
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && finalizers.length > 0 && { finalizers }),
    ...(ownerReferences && ownerReferences.length > 0 && { ownerReferences }),
  }
  return stringifyYaml({ apiVersion, kind, metadata: written, spec }, { compat: 'yaml-1.1' })
}

export type StackName = { readonly namespace: string; readonly name: string }

export type ParsedYaml = {
  readonly object?: KubeObject<Pick<Stack, 'spec'>>
  readonly problems: readonly YamlProblem[]
  /** The line of a field, or of the nearest field around it. */
  lineOf(field: string): number | undefined
}

/** What the server has rejected a text with. */
export type Rejection = Pick<Status, 'message' | 'details'>

/** Reads a text that a user has edited. It must be the Stack of this name: an editor of one object is no way to create others. */
export function parseStackYaml(text: string, { namespace, name }: StackName): ParsedYaml {
  const lineOf = lineFinder(text)
  let object: unknown
  try {
    object = parseUntrustedYaml(text)
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const [, message = error.message, line] = /^(.*) at line (\d+), column \d+$/s.exec(error.message) ?? []
    return { problems: [{ message, ...(line !== undefined && { line: Number(line) }) }], lineOf }
  }
  if (!isJsonObject(object)) return { problems: [{ message: 'it must be one object', line: 1 }], lineOf }
  const metadata = isJsonObject(object.metadata) ? object.metadata : {}
  const expected = [
    ['apiVersion', object.apiVersion, stackResource.apiVersion],
    ['kind', object.kind, stackResource.kind],
    ['metadata.name', metadata.name, name],
    ['metadata.namespace', metadata.namespace, namespace],
  ] as const
  const problems = expected.flatMap(([field, got, want]): YamlProblem[] => {
    const line = lineOf(field)
    return got === want ? [] : [{ field, message: `must be ${want}, as it is of this Stack`, ...(line !== undefined && { line }) }]
  })
  return { ...(problems.length === 0 && { object: object as unknown as KubeObject<Pick<Stack, 'spec'>> }), problems, lineOf }
}

/** What the server has rejected, each with its field and line where it names one. */
export function problemsOf({ message: text = '', details }: Rejection, lineOf: ParsedYaml['lineOf']): YamlProblem[] {
  const located = (message: string, field: string | undefined): YamlProblem => {
    const line = field === undefined ? undefined : lineOf(field)
    return { message, ...(field !== undefined && { field }), ...(line !== undefined && { line }) }
  }
  const causes = (details?.causes ?? []).filter(({ field }) => field)
  if (causes.length > 0) return causes.map(({ field, message }) => located(message, field))
  const unknown = [...text.matchAll(/(unknown|duplicate) field "((?:[^"\\]|\\.)*)"/g)]
  if (unknown.length > 0) return unknown.map(([, kind, field]) => located(`${kind} field`, field))
  return [located(text, undefined)]
}

/** `spec.variablesFrom[0].secretRef`, `metadata.labels[a.b/c]` */
function stepsOf(field: string): string[] {
  return [...field.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map(([whole, inner]) => inner?.replace(/^"|"$/g, '') ?? whole)
}

/** Finds lines of a text that {@link parseUntrustedYaml} has accepted. */
export function lineFinder(text: string): ParsedYaml['lineOf'] {
  const lineCounter = new LineCounter()
  let document: Document.Parsed | undefined
  return field => {
    // With uniqueKeys the parser compares every pair of keys.
    document ??= parseDocument(text, { lineCounter, uniqueKeys: false })
    return lineAt(document, field, lineCounter)
  }
}

function lineAt(document: Document.Parsed, field: string, lines: LineCounter): number | undefined {
  let node: unknown = document.contents
  let offset: number | undefined
  for (const step of stepsOf(field)) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => String(key) === step)
      if (!pair) break
      offset = (pair.key as { range?: [number, number, number] }).range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      const item = node.items[Number(step)] as { range?: [number, number, number] } | undefined
      if (!item) break
      offset = item.range?.[0] ?? offset
      node = item
    } else break
  }
  return offset === undefined ? undefined : lines.linePos(offset).line
}
