import { equal, match, notEqual, throws } from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openStatusToken, recordStatusUrl, statusTokenPath, statusUrlPath } from './status-access.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-status-access-'))
const path = statusTokenPath(directory)
after(() => rmSync(directory, { recursive: true, force: true }))

test('the token is created once, readable by its owner only, and another one after its file was deleted', () => {
  const token = openStatusToken(directory)
  match(token, /^[\w-]{43}$/)
  equal(statSync(path).mode & 0o777, 0o600)
  equal(openStatusToken(directory), token)
  equal(readFileSync(path, 'utf8'), `${token}\n`)
  rmSync(path)
  notEqual(openStatusToken(directory), token)
})

test('a token from elsewhere is used, an empty file is filled, and a token that is too short or no header value is rejected', () => {
  writeFileSync(path, 'from-a-secret-of-the-cluster\n')
  equal(openStatusToken(directory), 'from-a-secret-of-the-cluster')
  for (const text of ['short', 'with spaces and ; in it'] as const) {
    writeFileSync(path, text)
    throws(() => openStatusToken(directory), /status-token must contain at least 16 characters/)
  }
  writeFileSync(path, '')
  match(openStatusToken(directory), /^[\w-]{43}$/)
})

test('the address is recorded until the process stops', () => {
  const remove = recordStatusUrl(directory, 'http://127.0.0.1:1')
  equal(readFileSync(statusUrlPath(directory), 'utf8'), 'http://127.0.0.1:1\n')
  remove()
  equal(existsSync(statusUrlPath(directory)), false)
})
