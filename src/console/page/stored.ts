import { type Signal, signal } from '@preact/signals'

/**
 * A signal that is kept below `oarlock.`: in localStorage, or where `storage` returns. A stored value that `isValid` rejects, or that cannot be
 * read, counts as missing.
 */
export function stored<Value>(
  name: string,
  missing: Value,
  isValid: (value: unknown) => value is Value,
  storage = () => localStorage,
): Signal<Value> {
  const key = `oarlock.${name}`
  const value = signal(read(key, missing, isValid, storage))
  value.subscribe(now => {
    try {
      if (now === missing) storage().removeItem(key)
      else storage().setItem(key, JSON.stringify(now))
    } catch {
      // The browser may forbid storage: the value is kept until the page is closed.
    }
  })
  return value
}

function read<Value>(key: string, missing: Value, isValid: (value: unknown) => value is Value, storage: () => Storage): Value {
  try {
    const value: unknown = JSON.parse(storage().getItem(key) ?? 'null')
    return isValid(value) ? value : missing
  } catch {
    return missing
  }
}
