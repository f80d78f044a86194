/**
 * Paths in transcripts: `metadata.name`, `status.conditions[type=Ready].status`; `\.` is a dot in a key. An array without a filter stands
 * for each of its items; several paths are separated by spaces.
 */
type Segment = { key: string } | { where: string; is: string }

export function keepPaths(value: unknown, paths: string): unknown {
  const parsed = paths.split(/[ ,]+/).filter(Boolean).map(parsePath)
  return keep(value, parsed)
}

export function dropPaths(value: unknown, paths: string): unknown {
  let result = value
  for (const path of paths.split(/[ ,]+/).filter(Boolean)) result = drop(result, parsePath(path))
  return result
}

/** The first value at a path. */
export function valueAt(value: unknown, path: string): unknown {
  let current = value
  for (const segment of parsePath(path)) {
    if (Array.isArray(current)) {
      current =
        'where' in segment
          ? current.find(item => matches(item, segment))
          : current[Number.isInteger(Number(segment.key)) ? Number(segment.key) : 0]
      if ('key' in segment && !Number.isInteger(Number(segment.key)))
        current = (current as Record<string, unknown> | undefined)?.[segment.key]
    } else if (isObject(current) && 'key' in segment) current = current[segment.key]
    else return undefined
  }
  return current
}

function parsePath(path: string): Segment[] {
  return [...path.matchAll(/\[([^=\]]+)=([^\]]*)\]|((?:\\.|[^.[\\])+)/g)].map(([, where, is, key]) =>
    where !== undefined ? { where, is: is ?? '' } : { key: (key ?? '').replaceAll('\\.', '.') },
  )
}

function keep(value: unknown, paths: Segment[][]): unknown {
  if (paths.some(path => path.length === 0)) return value
  if (Array.isArray(value)) {
    const filters = paths.filter(path => 'where' in path[0]!)
    if (filters.length === 0) return value.map(item => keep(item, paths))
    return value.flatMap(item => {
      const chosen = filters.filter(([first]) => matches(item, first!))
      return chosen.length > 0
        ? [
            keep(
              item,
              chosen.map(path => path.slice(1)),
            ),
          ]
        : []
    })
  }
  if (!isObject(value)) return value
  const result: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(value)) {
    const chosen = paths.filter(([first]) => 'key' in first! && first.key === key)
    if (chosen.length > 0)
      result[key] = keep(
        inner,
        chosen.map(path => path.slice(1)),
      )
  }
  return result
}

function drop(value: unknown, [first, ...rest]: Segment[]): unknown {
  if (!first) return value
  if (Array.isArray(value)) {
    if ('key' in first) return value.map(item => drop(item, [first, ...rest]))
    return rest.length === 0
      ? value.filter(item => !matches(item, first))
      : value.map(item => (matches(item, first) ? drop(item, rest) : item))
  }
  if (!isObject(value) || !('key' in first) || !(first.key in value)) return value
  const { [first.key]: inner, ...others } = value
  return rest.length === 0 ? others : { ...others, [first.key]: drop(inner, rest) }
}

function matches(item: unknown, segment: Segment): boolean {
  return 'where' in segment && isObject(item) && String(item[segment.where]) === segment.is
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
