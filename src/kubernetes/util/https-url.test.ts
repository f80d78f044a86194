import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { httpsUrlError } from './https-url.ts'

for (const url of ['https://oarlock.example', 'https://oarlock.example:7468/path', 'https://[::1]:7468'])
  test(`accepts ${url}`, () => equal(httpsUrlError(url), undefined))
for (const url of [
  '',
  'http://x',
  'ftp://x',
  'https:x',
  'https://',
  'https://a:b@x',
  'https://@x',
  'https://x?',
  'https://x?a=b',
  'https://x#a',
  'x',
])
  test(`rejects ${JSON.stringify(url)}`, () => match(httpsUrlError(url) ?? '', /must be an https:/))
