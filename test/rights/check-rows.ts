import { deepEqual, ok } from 'node:assert/strict'
import type { Fixture } from './fixture.ts'
import type { Row } from './rows.ts'

/** Sends the request of every row and reports all decisions that differ from the expected ones. */
export async function checkRows(fixture: Fixture, rows: readonly Row[], server: 'embedded' | 'kubernetes', to?: 'api'): Promise<void> {
  ok(rows.length > 0)
  const wrong: string[] = []
  for (const row of rows) {
    const isAllowed = server === 'kubernetes' && row.onKubernetes ? row.onKubernetes.may : row.may
    const { code, message } = await fixture.send(to ?? row.to, row.user, row)
    const decision = code >= 200 && code < 300 ? 'allowed' : code === 401 || code === 403 ? 'denied' : 'neither'
    const expected = isAllowed ? 'allowed' : 'denied'
    // A policy whose expression fails denies, too: for no reason that a user understands.
    const isPolicyError = /resulted in error|failed to/.test(message)
    const body = row.body === undefined ? '' : ` ${JSON.stringify(row.body)}`
    if (decision !== expected || isPolicyError)
      wrong.push(`${row.user}: ${row.method} ${row.path}${body}: expected ${expected}, got ${code} ${message}`)
  }
  deepEqual(wrong, [])
}
