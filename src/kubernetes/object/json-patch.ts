import { cloneJson, equalJson, isJsonObject, setOwn } from './json.ts'
import type { Json } from './object.ts'
import { badRequest, StatusError } from './status-error.ts'

/** The limit that Kubernetes has for one patch. */
export const maxPatchOperations = 10_000
/** The JSON characters that all `copy` operations of one patch may add: nested copies double with every step. */
export const maxPatchCopySize = 3 * 1024 * 1024

/** The list items that all operations of one patch may shift to open or close a gap: 10 ms of work. */
export const maxPatchMoves = 20_000_000

type Operation = { op: string; path: string[]; from?: string[]; value?: Json }
type ShiftBudget = { remaining: number }
type Container = Json[] | { [key: string]: Json }

/**
 * Applies an RFC 6902 JSON Patch as kube-apiserver does, and returns the new document; `document` is not changed.
 * @throws {StatusError} BadRequest when `operations` is not a patch or is too large, Invalid (422) when it does not apply
 * to the document: a failed `test`, a path that does not exist.
 */
export function applyJsonPatch(document: Json, operations: unknown): Json {
  const patch = readOperations(operations)
  // The wrapper makes the whole document an ordinary member, so that the empty path needs no special case.
  const root: { document: Json } = { document: cloneJson(document) }
  let copied = 0
  const shifts = { remaining: maxPatchMoves }
  for (const { op, path, from, value } of patch) {
    switch (op) {
      case 'add':
        add(root, path, cloneJson(value!), op, shifts)
        break
      case 'remove':
        if (path.length === 0) throw unprocessable('remove operation does not apply: the whole document cannot be removed')
        remove(root, path, op, shifts)
        break
      case 'replace':
        replace(root, path, cloneJson(value!), op)
        break
      case 'move': {
        const moved = get(root, from!, op)
        if (equalJson(from, path)) break
        if (from!.length < path.length && from!.every((token, index) => token === path[index])) {
          throw unprocessable(`move operation does not apply: "${pointer(from!)}" cannot move into itself, at "${pointer(path)}"`)
        }
        remove(root, from!, op, shifts)
        add(root, path, moved, op, shifts)
        break
      }
      case 'copy': {
        const source = get(root, from!, op)
        copied += JSON.stringify(source).length
        if (copied > maxPatchCopySize) {
          throw unprocessable(`copy operations add ${copied} characters, at most ${maxPatchCopySize} are allowed`)
        }
        add(root, path, cloneJson(source), op, shifts)
        break
      }
      case 'test':
        if (!equalJson(get(root, path, op), value)) {
          throw unprocessable(`testing value ${pointer(path)} failed: test failed`)
        }
    }
  }
  return root.document
}

function readOperations(operations: unknown): Operation[] {
  if (!Array.isArray(operations)) {
    const got = operations === null ? 'null' : typeof operations
    throw badRequest(`error decoding patch: a JSON patch must be an array of operations, got ${got}`)
  }
  if (operations.length > maxPatchOperations) {
    throw new StatusError(
      'RequestEntityTooLarge',
      `The allowed maximum operations in a JSON patch is ${maxPatchOperations}, got ${operations.length}`,
    )
  }
  return operations.map((operation: unknown, index): Operation => {
    const at = `error decoding patch: operation ${index}`
    if (!isJsonObject(operation)) throw badRequest(`${at} must be an object`)
    const { op } = operation
    if (typeof op !== 'string' || !(op in needs)) {
      throw badRequest(`${at}: unexpected kind ${JSON.stringify(op)}, allowed are ${Object.keys(needs).join(', ')}`)
    }
    const read = (field: 'path' | 'from') => {
      const text = operation[field]
      if (typeof text !== 'string') throw badRequest(`${at} (${op}) needs ${field}, a JSON pointer such as "/spec/replicas"`)
      if (text !== '' && !text.startsWith('/')) throw badRequest(`${at} (${op}): ${field} ${JSON.stringify(text)} must start with "/"`)
      return text.split('/').slice(1).map(unescapeToken)
    }
    const path = read('path')
    if (needs[op] === 'from') return { op, path, from: read('from') }
    if (needs[op] !== 'value') return { op, path }
    if (!Object.hasOwn(operation, 'value')) throw badRequest(`${at} (${op}) needs a value`)
    return { op, path, value: operation.value as Json }
  })
}

const needs: Record<string, 'value' | 'from' | 'nothing'> = Object.assign(Object.create(null), {
  add: 'value',
  remove: 'nothing',
  replace: 'value',
  move: 'from',
  copy: 'from',
  test: 'value',
})

const unescapeToken = (token: string) => token.replaceAll('~1', '/').replaceAll('~0', '~')
const maxPointerLength = 1_024
// As much of a path as is needed to find the operation.
function pointer(path: string[]): string {
  const text = path
    .slice(0, maxPointerLength)
    .map(token => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
  return text.length > maxPointerLength ? `${text.slice(0, maxPointerLength)}…` : text
}

function unprocessable(message: string): StatusError {
  return new StatusError('Invalid', `the server rejected our request due to an error in our request: ${message}`)
}

function missing(op: string, path: string[]): StatusError {
  return unprocessable(`${op} operation does not apply: doc is missing path: ${pointer(path)}: missing value`)
}

function indexOf(list: Json[], token: string, op: string, path: string[], max: number): number {
  const index = /^(0|[1-9][0-9]{0,8})$/.test(token) ? Number(token) : Number.NaN
  if (!(index <= max)) {
    throw unprocessable(`${op} operation does not apply: ${pointer(path)}: index ${token} of a list of ${list.length} items`)
  }
  return index
}

function child(container: Json, token: string, op: string, path: string[]): Json {
  if (Array.isArray(container)) return container[indexOf(container, token, op, path, container.length - 1)]!
  if (!isJsonObject(container) || !Object.hasOwn(container, token)) throw missing(op, path)
  return container[token] as Json
}

function get(root: { document: Json }, path: string[], op: string): Json {
  let value = root.document
  for (const token of path) value = child(value, token, op, path)
  return value
}

/** The container that holds the last token of `path`, and that token. */
function parentOf(root: { document: Json }, path: string[], op: string): [Container, string] {
  if (path.length === 0) return [root, 'document']
  const parent = get(root, path.slice(0, -1), op)
  if (typeof parent !== 'object' || parent === null) throw missing(op, path)
  return [parent, path.at(-1)!]
}

function add(root: { document: Json }, path: string[], value: Json, op: string, shifts: ShiftBudget): void {
  const [parent, token] = parentOf(root, path, op)
  if (!Array.isArray(parent)) setOwn(parent, token, value)
  else if (token === '-') parent.push(value)
  else {
    const index = indexOf(parent, token, op, path, parent.length)
    spendShifts(shifts, parent.length - index)
    parent.splice(index, 0, value)
  }
}

/** As in kube-apiserver, and unlike RFC 6902, an absent field is added. */
function replace(root: { document: Json }, path: string[], value: Json, op: string): void {
  const [parent, token] = parentOf(root, path, op)
  if (Array.isArray(parent)) parent[indexOf(parent, token, op, path, parent.length - 1)] = value
  else setOwn(parent, token, value)
}

function remove(root: { document: Json }, path: string[], op: string, shifts: ShiftBudget): void {
  const [parent, token] = parentOf(root, path, op)
  child(parent, token, op, path)
  if (Array.isArray(parent)) {
    spendShifts(shifts, parent.length - Number(token))
    parent.splice(Number(token), 1)
  } else delete parent[token]
}

function spendShifts(shifts: ShiftBudget, count: number): void {
  shifts.remaining -= count
  if (shifts.remaining < 0) throw unprocessable('the operations shift too many items of long lists: replace the list as a whole')
}
