import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { hideCredentials } from './hide-credentials.ts'

for (const [url, shown] of [
  ['https://example.com/a?b=c', 'https://example.com/a?b=c'],
  ['https://ada:secret@example.com/a', 'https://***@example.com/a'],
  ['https://token@example.com/a@b', 'https://***@example.com/a@b'],
  ['s3://bucket/a@b', 's3://bucket/a@b'],
  ['https://ada:sec/ret@example.com/a', 'https://***@example.com/a'],
] as const)
  test(`${url} is shown as ${shown}`, () => equal(hideCredentials(url), shown))
