import { stringify } from 'yaml'
import { changedFields, equalJson, isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { PlanDiff } from '../engine.ts'
import { containsTrue, hideSensitive, sensitiveText } from '../hide-sensitive.ts'
import { formatEntry } from './inventory.ts'

export type ObjectChange = {
  action: 'add' | 'change' | 'delete'
  apiVersion: string
  kind: string
  namespace?: string | undefined
  name: string
  before?: Record<string, unknown> | undefined
  after?: Record<string, unknown> | undefined
}

/** Lines before and after a change in a text of several lines. */
const contextLines = 3
const symbols = { add: '+', change: '~', delete: '-' } as const

/** All changes, every value in full except those of Secrets (invariant 9). */
export function diffObjects(changes: readonly ObjectChange[]): PlanDiff {
  const text = changes.flatMap(change => [...objectLines(change), '']).join('\n')
  return { text: text.trimEnd(), document: { changes: changes.map(describeChange) } }
}

function describeChange({ action, apiVersion, kind, namespace, name, before, after }: ObjectChange): Json {
  const hidden = (object: Record<string, unknown> | undefined) => object && hideSensitive(object as Json, secretMarks(kind, object))
  const identity = { action, apiVersion, kind, ...(namespace !== undefined && { namespace }), name }
  const sides = { before: hidden(before) ?? null, after: hidden(after) ?? null }
  // Of a Secret both sides look the same.
  return before && after ? { ...identity, changedFields: changedFields(before, after), ...sides } : { ...identity, ...sides }
}

function objectLines({ action, kind, namespace, name, before, after }: ObjectChange): string[] {
  const title = `${symbols[action]} ${formatEntry({ kind, ...(namespace !== undefined && { namespace }), name })}`
  if (action === 'add' && after) {
    const yaml = stringify(hideSensitive(after as Json, secretMarks(kind, after)), { lineWidth: 0, aliasDuplicateObjects: false })
    return [title, ...prefixed('    + ', yaml.trimEnd())]
  }
  if (action !== 'change') return [title]
  const marks = secretMarks(kind, { ...before, ...after, data: { ...asObject(before?.data), ...asObject(after?.data) } })
  const lines = fieldLines(before, after, '', marks)
  return [lines.length === 0 ? `${title} (now managed by this Stack)` : title, ...lines.map(line => `    ${line}`)]
}

function fieldLines(before: unknown, after: unknown, path: string, marks: unknown): string[] {
  if (equalJson(before, after)) return []
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return keys.flatMap(key => fieldLines(before[key], after[key], childPath(path, key), isJsonObject(marks) ? marks[key] : marks))
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const indexes = [...Array(Math.max(before.length, after.length)).keys()]
    return indexes.flatMap(index => fieldLines(before[index], after[index], `${path}[${index}]`, marks))
  }
  const isHidden = containsTrue(marks)
  if (!isHidden && [before, after].some(isMultiline) && [before, after].every(side => side === undefined || typeof side === 'string'))
    return textLines(before as string | undefined, after as string | undefined, path)
  const value = (side: unknown) => (isHidden ? sensitiveText : JSON.stringify(side))
  if (before === undefined) return [`+ ${path}: ${value(after)}`]
  return after === undefined ? [`- ${path}: ${value(before)}`] : [`~ ${path}: ${value(before)} → ${value(after)}`]
}

const isMultiline = (value: unknown) => typeof value === 'string' && value.includes('\n')

/** The lines from the first to the last one that differ, with a few around them. */
function textLines(before: string | undefined, after: string | undefined, path: string): string[] {
  if (before === undefined || after === undefined) {
    const symbol = before === undefined ? '+' : '-'
    return [`${symbol} ${path}:`, ...prefixed(`    ${symbol} `, before ?? after ?? '')]
  }
  const [old, now] = [before.split('\n'), after.split('\n')]
  const shorter = Math.min(old.length, now.length)
  let start = 0
  while (start < shorter && old[start] === now[start]) start++
  let end = 0
  while (end < shorter - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const from = Math.max(0, start - contextLines)
  return [
    `~ ${path}, from line ${from + 1}:`,
    ...old.slice(from, start).map(line => `      ${line}`),
    ...old.slice(start, old.length - end).map(line => `    - ${line}`),
    ...now.slice(start, now.length - end).map(line => `    + ${line}`),
    ...old.slice(old.length - end, old.length - end + contextLines).map(line => `      ${line}`),
  ]
}

const prefixed = (prefix: string, text: string) => text.split('\n').map(line => prefix + line)

const childPath = (path: string, key: string) => (/^[\w-]+$/.test(key) ? (path === '' ? key : `${path}.${key}`) : `${path}["${key}"]`)

/** What is secret in an object. kubectl keeps a copy of the whole object in an annotation. */
function secretMarks(kind: string, object: Record<string, unknown>): unknown {
  if (kind !== 'Secret') return undefined
  const all = (field: unknown) => Object.fromEntries(Object.keys(asObject(field)).map(key => [key, true]))
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': true }
  return { data: all(object.data), stringData: all(object.stringData), metadata: { annotations } }
}

const asObject = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
