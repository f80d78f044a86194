import { effect, type Signal, signal } from '@preact/signals'

/** A signal that the browser keeps, for all tabs. What cannot be read is the default. */
export function stored<T>(name: string, byDefault: T): Signal<T> {
  const key = `oarlock.${name}`
  const value = signal(read(key, byDefault))
  let isFirst = true
  effect(() => {
    const text = JSON.stringify(value.value)
    if (isFirst) isFirst = false
    else write(key, text)
  })
  addEventListener('storage', event => {
    if (event.key === key) value.value = read(key, byDefault)
  })
  return value
}

function read<T>(key: string, byDefault: T): T {
  try {
    const text = localStorage.getItem(key)
    return text === null ? byDefault : (JSON.parse(text) as T)
  } catch {
    return byDefault
  }
}

function write(key: string, text: string): void {
  try {
    if (localStorage.getItem(key) !== text) localStorage.setItem(key, text)
  } catch {
    // The browser stores nothing for this page: the value lasts as long as the tab.
  }
}
