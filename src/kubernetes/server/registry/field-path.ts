/** Reads a simple path such as `.spec.source.git` from an object; undefined when a part is missing. */
export function fieldReader(path: string): (object: unknown) => unknown {
  const parts = path.split('.').filter(part => part !== '')
  return object => {
    let value = object
    for (const part of parts) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
      value = (value as Record<string, unknown>)[part]
    }
    return value
  }
}
