import { badRequest } from '../../kubernetes/object/index.ts'
import { maxPageSize, type ViewQuery } from '../protocol/index.ts'

const tables = ['stacks', 'runs', 'queue', 'workers', 'pools', 'tenants', 'controllers', 'partitions']
const maxTextLength = 1_000

/** A view as the page has sent it. @throws {StatusError} naming what is wrong. */
export function validQuery(value: unknown): ViewQuery {
  const { kind, ...rest } = (value ?? {}) as Record<string, unknown>
  const text = (name: string) => {
    const got = rest[name]
    if (got !== undefined && (typeof got !== 'string' || got.length > maxTextLength))
      throw badRequest(`${name} of view ${kind} must be a text of at most ${maxTextLength} characters`)
    return got as string | undefined
  }
  const number = (name: string, most: number) => {
    const got = rest[name]
    if (got !== undefined && !(Number.isInteger(got) && (got as number) >= 0 && (got as number) <= most))
      throw badRequest(`${name} of view ${kind} must be an integer from 0 to ${most}, got ${JSON.stringify(got)}`)
    return got as number | undefined
  }
  if (kind === 'overview') return { kind }
  if (kind === 'history') {
    const pool = text('pool')
    return { kind, minutes: number('minutes', 1_440) ?? 60, ...(pool !== undefined && { pool }) }
  }
  if (kind === 'pool') {
    const name = text('name')
    if (!name) throw badRequest('view pool must have a name')
    return { kind, name }
  }
  if (kind === 'stack' || kind === 'run') {
    const [namespace, name] = [text('namespace'), text('name')]
    if (!namespace || !name) throw badRequest(`view ${kind} must have a namespace and a name`)
    return { kind, namespace, name }
  }
  if (typeof kind !== 'string' || !tables.includes(kind))
    throw badRequest(`unknown kind of view ${JSON.stringify(kind)}: use overview, history, stack, run, pool, ${tables.join(', ')}`)
  const [filter, sort] = [text('filter'), text('sort')]
  const [offset, limit] = [number('offset', 10_000_000), number('limit', maxPageSize)]
  return {
    kind: kind as 'stacks',
    ...(filter !== undefined && { filter }),
    ...(sort !== undefined && { sort }),
    ...(offset !== undefined && { offset }),
    ...(limit !== undefined && { limit }),
  }
}
