import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWithin, resolveInside } from './symlinks.ts'

// The symlinks of the tree, by path below /root.
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
  test(`symlink ${path} resolves to ${want === undefined ? 'a path outside' : `"${want}"`}`, () =>
    assert.equal(resolveInside('/root', path, readLink), want))
}

test('isWithin holds for a directory itself and its parents, not for a directory with the same prefix', () => {
  assert.equal(isWithin('/a/b', '/a/b'), true)
  assert.equal(isWithin('/a/b/c', '/a'), true)
  assert.equal(isWithin('/a', '/'), true)
  assert.equal(isWithin('/a/bc', '/a/b'), false)
  assert.equal(isWithin('/a', '/a/b'), false)
})
