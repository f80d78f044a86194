/** Returns a reader of a path such as `.spec.source.git`; it returns undefined if a part is missing. */
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
