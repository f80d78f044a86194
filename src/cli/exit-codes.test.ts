import { deepEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { exitCodeHelp, exitCodes } from './exit-codes.ts'

test('docs/cli.md and --help list every exit code with the same meaning', () => {
  const text = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, meaning]) => [Number(code), meaning])
  deepEqual(rows, exitCodeHelp)
  deepEqual(
    rows.map(([code]) => code),
    Object.values(exitCodes),
  )
})
