import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWithin, resolveInside } from './symlinks.ts'

// The tree's symlinks, by their path below /root.
const links: Record<string, string> = {
  up: '..',
  absolute: '/etc/passwd',
  here: '.',
  'd/back': '..',
  'd/file': '../other/file',
  tricky: 'd/back/../x',
  trickier: 'here/../x',
  loop: 'loop',
  chain: 'd/file',
  dangling: 'not/there/yet',
}
const readLink = (path: string) => links[path.slice('/root/'.length)]

for (const [path, want] of [
  ['d/file', 'other/file'],
  ['chain', 'other/file'],
  ['dangling', 'not/there/yet'],
  ['here', ''],
  ['d/back', ''],
  ['up', undefined],
  ['absolute', undefined],
  ['tricky', undefined],
  ['trickier', undefined],
  ['loop', undefined],
] as const) {
  test(`symlink ${path} leads ${want === undefined ? 'out' : `to "${want}"`}`, () =>
    assert.equal(resolveInside('/root', path, readLink), want))
}

test('a directory is within itself and its parents, not within its namesakes', () => {
  assert.equal(isWithin('/a/b', '/a/b'), true)
  assert.equal(isWithin('/a/b/c', '/a'), true)
  assert.equal(isWithin('/a', '/'), true)
  assert.equal(isWithin('/a/bc', '/a/b'), false)
  assert.equal(isWithin('/a', '/a/b'), false)
})
