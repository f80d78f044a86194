import type { JsonObject } from '../object/object.ts'

/**
 * A set of field paths in its wire format (FieldsV1), so that a write decodes and encodes nothing: `f:name` is a field,
 * `k:{…}` an item of a map list, `v:…` an item of a set, `.` the path itself. A node without keys is a member.
 * Sets are immutable; operations return one of their arguments where possible.
 * Undefined is the only empty set: a root node always has keys.
 */
export type FieldSet = JsonObject | undefined
type Node = { readonly [element: string]: Node }

const member: Node = Object.freeze({})
const self = '.'

/** The node of a member without members below it. */
export const memberNode: JsonObject = member as JsonObject

function isMember(node: Node): boolean {
  if (self in node) return true
  for (const _ in node) return false
  return true
}

function hasChildren(node: Node): boolean {
  for (const key in node) if (key !== self) return true
  return false
}

/** True if the path at `element` is a member of `set`. */
export function hasMember(set: FieldSet, element: string): boolean {
  const node = set?.[element] as Node | undefined
  return node !== undefined && isMember(node)
}

/** The members of `set` below `element`. */
export function below(set: FieldSet, element: string): FieldSet {
  const node = set?.[element] as Node | undefined
  return node !== undefined && hasChildren(node) ? (node as JsonObject) : undefined
}

/** The node of a path with `children` below it; undefined if it contains no member. */
export function nodeOf(isMemberItself: boolean, children: FieldSet): JsonObject | undefined {
  if (children === undefined) return isMemberItself ? memberNode : undefined
  if (!isMemberItself) {
    if (!(self in children)) return children
    const { [self]: _, ...rest } = children
    return rest
  }
  return self in children ? children : { [self]: memberNode, ...children }
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || a === b) return b
  if (b === undefined) return a
  return unionNodes(a as Node, b as Node, true) as JsonObject
}

function unionNodes(a: Node, b: Node, isRoot: boolean): Node {
  if (a === b) return a
  let result: Record<string, Node> | undefined
  if (!isRoot && isMember(b) && !isMember(a)) result = { [self]: member, ...a }
  // A bare member remains a member when it gets children.
  if (!isRoot && isMember(a) && !(self in a) && hasChildren(b)) result = { [self]: member }
  for (const key in b) {
    if (key === self) continue
    const left = a[key]
    const next = left === undefined ? b[key]! : unionNodes(left, b[key]!, false)
    if (next === left) continue
    result ??= { ...a }
    result[key] = next
  }
  return result ?? a
}

/** Members of `a` that are not members of `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return a
  return differenceNodes(a as Node, b as Node, true) as FieldSet
}

function differenceNodes(a: Node, b: Node, isRoot: boolean): Node | undefined {
  let changes: Map<string, Node | undefined> | undefined
  for (const key in b) {
    const left = key === self ? undefined : a[key]
    if (left === undefined) continue
    const next = differenceNodes(left, b[key]!, false)
    if (next === left) continue
    changes ??= new Map()
    changes.set(key, next)
  }
  const wasMember = !isRoot && isMember(a)
  const staysMember = wasMember && !isMember(b)
  if (changes === undefined && wasMember === staysMember) return a
  const rest = changes === undefined ? a : withChanges(a, changes)
  return nodeOf(staysMember, hasChildren(rest) ? (rest as JsonObject) : undefined) as Node | undefined
}

/** With more changes than this a copy without them is built: to delete fields of a large copy takes many times as long. */
const maxDeletions = 16

function withChanges(node: Node, changes: ReadonlyMap<string, Node | undefined>): Node {
  if (changes.size <= maxDeletions) {
    const copy: Record<string, Node> = { ...node }
    for (const [key, next] of changes) {
      if (next === undefined) delete copy[key]
      else copy[key] = next
    }
    return copy
  }
  const rest: Record<string, Node> = {}
  for (const key in node) {
    const next = changes.has(key) ? changes.get(key) : node[key]
    if (next !== undefined) rest[key] = next
  }
  return rest
}

/** The paths that are members of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === undefined || b === undefined) return undefined
  return intersectNodes(a as Node, b as Node, true) as FieldSet
}

function intersectNodes(a: Node, b: Node, isRoot: boolean): Node | undefined {
  let children: Record<string, Node> | undefined
  for (const key in a) {
    const right = key === self ? undefined : b[key]
    if (right === undefined) continue
    const next = intersectNodes(a[key]!, right, false)
    if (next === undefined) continue
    children ??= {}
    children[key] = next
  }
  return nodeOf(!isRoot && isMember(a) && isMember(b), children as FieldSet) as Node | undefined
}

/** True if both have the same members. */
export function equalSets(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  return a !== undefined && b !== undefined && difference(a, b) === undefined && difference(b, a) === undefined
}

/** The members in Kubernetes' notation for messages: `.spec.ports[name="http"].port`. */
export function pathsOf(set: FieldSet): string[] {
  const paths: string[] = []
  const visit = (node: Node, path: string, isRoot: boolean) => {
    if (!isRoot && isMember(node)) paths.push(path)
    for (const key of Object.keys(node)) if (key !== self) visit(node[key]!, path + formatElement(key), false)
  }
  if (set !== undefined) visit(set as Node, '', true)
  return paths.sort()
}

function formatElement(element: string): string {
  const rest = element.slice(2)
  if (element.startsWith('f:')) return `.${rest}`
  if (element.startsWith('v:')) return `[=${rest}]`
  if (element.startsWith('k:')) {
    try {
      const fields = Object.entries(JSON.parse(rest) as Record<string, unknown>)
      return `[${fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
    } catch {
      // The field sets of clients may contain anything after the prefix.
    }
  }
  return `[${rest}]`
}

const maxDepth = 200

/** True if `value`, sent by a client, is a FieldsV1 that these functions can process. */
export function isFieldsV1(value: unknown, depth = 0): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > maxDepth) return false
  for (const key of Object.keys(value)) {
    if (key !== self && !/^[fkvi]:/.test(key)) return false
    if (!isFieldsV1((value as JsonObject)[key], depth + 1)) return false
  }
  return true
}
