import { readFileSync } from 'node:fs'

/** A row of the table "Promises" in SECURITY.md, and the tests that it names by path and a part of their title. */
export type SecurityPromise = { readonly name: string; readonly tests: readonly { readonly title: string; readonly path: string }[] }

export function readPromises(): SecurityPromise[] {
  const section = readFileSync('SECURITY.md', 'utf8').match(/^## Promises$(.*?)^## /ms)?.[1] ?? ''
  return [...section.matchAll(/^\| \*\*([^*]+)\.\*\* [^|]*\|([^|]*)\|$/gm)].map(([, name = '', tests = '']) => ({
    name,
    tests: [...tests.matchAll(/"([^"]+)" \(`([^`]+)`\)/g)].map(([, title = '', path = '']) => ({ title, path })),
  }))
}
