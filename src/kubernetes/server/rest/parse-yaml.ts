import type { Node, Tags } from 'yaml'
import { isLosslessNumber, parseJsonStrict, StatusError, type StrictJson } from '../../object/index.ts'
import { yaml } from '../wire/index.ts'
import { checkText, unstorableNumber } from './check-size.ts'

/** Limit of aliases: with nested aliases a small document can expand without bound. */
const maxAliasCount = 100

// YAML 1.1 as kube-apiserver parses it: `yes` and `on` are booleans and 0777 is octal, but dates stay strings and 1:30 is not a number.
const asGoReads = (tags: Tags): Tags =>
  tags.filter(tag => typeof tag === 'string' || (tag.tag !== 'tag:yaml.org,2002:timestamp' && tag.format !== 'TIME'))

/**
 * Parses one YAML document; duplicate keys are an error.
 * JSON, which kubectl sends as YAML for server-side apply, is parsed as JSON: 200 times as fast, and parsing blocks other requests.
 * @throws {Error} for invalid YAML; {StatusError} for a document that is too large.
 */
export function parseYamlText(text: string): unknown {
  const json = parseAsJson(text)
  if (json) return withoutDuplicates(json)
  // With uniqueKeys the parser compares every pair of keys: a mapping of 60,000 blocked the server for a minute.
  const document = yaml().parseDocument(text, {
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'error',
    version: '1.1',
    customTags: asGoReads,
  })
  const [error] = document.errors
  if (error) throw error
  checkKeys(document.contents)
  return document.toJS({ maxAliasCount })
}

/** Without what the parser quotes of the text, which may be a password. */
export function describeYamlError(error: unknown): string {
  const { message, pos } = error as Error & { pos?: [number, number] }
  return pos === undefined ? message : `${message.split(/: "|\n/, 1)[0]} at position ${pos[0]}`
}

/**
 * A YAML text that is JSON, as kubectl sends for server-side apply; undefined for any other.
 * @throws {StatusError} for JSON that is too large.
 */
export function parseAsJson(text: string): StrictJson | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined
  try {
    checkText(text)
    return parseJsonStrict(text)
  } catch (error) {
    if (error instanceof StatusError) throw error
    // Flow style or comments: the YAML parser takes it, or reports the error.
    return undefined
  }
}

/** @throws {Error} for duplicate keys. */
export function withoutDuplicates({ value, duplicates: [duplicate] }: StrictJson): unknown {
  if (duplicate !== undefined) throw new Error(`duplicate key ${JSON.stringify(duplicate)}`)
  return value
}

function checkKeys(root: Node | null): void {
  const { isMap, isScalar, isSeq } = yaml()
  const pending: unknown[] = [root]
  while (pending.length > 0) {
    const node = pending.pop()
    if (isScalar(node) && typeof node.value === 'number' && node.source !== undefined && !isLosslessNumber(node.source))
      throw unstorableNumber(node.source)
    if (isSeq(node)) for (const item of node.items) pending.push(item)
    if (!isMap(node)) continue
    const keys = new Set<unknown>()
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? key.value : key
      if (keys.has(name)) throw new Error(`duplicate key ${JSON.stringify(name)} in a mapping`)
      keys.add(name)
      pending.push(value)
    }
  }
}
