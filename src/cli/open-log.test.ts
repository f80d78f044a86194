import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConnectionError } from '../kubernetes/client/index.ts'
import { StatusError } from '../kubernetes/object/index.ts'
import { openLog } from './open-log.ts'

/** The logged `err` of each error. */
function logged(logLevel: string, errors: Error[]): { type: string; message: string; stack?: string }[] {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-log-'))
  const { logger, close } = openLog({ logLevel }, directory)
  for (const err of errors) logger.warn({ err }, 'failed')
  close()
  const lines = readFileSync(join(directory, 'oarlock.log'), 'utf8').trim().split('\n')
  rmSync(directory, { recursive: true })
  return lines.map(line => JSON.parse(line).err)
}

const forbidden = new StatusError('Forbidden', 'stacks is forbidden')
const refused = new ConnectionError('https://api:1', 'GET /', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))

test('an error of a server is logged without a stack, any other with one', () => {
  const missing = new Error('the server has no stacks', { cause: forbidden })
  const [first, second, third, bug] = logged('info', [forbidden, refused, missing, new Error('bug')])
  deepEqual(first, { type: 'StatusError', message: 'stacks is forbidden' })
  deepEqual(second, { type: 'ConnectionError', message: refused.message })
  deepEqual(third, { type: 'Error', message: 'the server has no stacks' })
  match(bug?.stack ?? '', /open-log\.test/)
})

test('with --log-level debug every error has its stack', () => {
  const [first] = logged('debug', [forbidden])
  equal(first?.message, 'stacks is forbidden')
  match(first?.stack ?? '', /open-log\.test/)
})
