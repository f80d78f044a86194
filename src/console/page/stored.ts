import { type Signal, signal } from '@preact/signals'

/** A signal that is kept in localStorage, below `oarlock.`. A stored value that `isValid` rejects, or that cannot be read, counts as missing. */
export function stored<Value>(name: string, missing: Value, isValid: (value: unknown) => value is Value): Signal<Value> {
  const key = `oarlock.${name}`
  const value = signal(read(key, missing, isValid))
  value.subscribe(now => {
    try {
      if (now === missing) localStorage.removeItem(key)
      else localStorage.setItem(key, JSON.stringify(now))
    } catch {
      // The browser may forbid storage: the value is kept until the page is closed.
    }
  })
  return value
}

function read<Value>(key: string, missing: Value, isValid: (value: unknown) => value is Value): Value {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? 'null')
    return isValid(value) ? value : missing
  } catch {
    return missing
  }
}
