import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { fairShare } from './bound-objects.ts'

for (const { name, sizes, share } of [
  { name: 'nothing', sizes: [], share: 100 },
  { name: 'what fits is whole', sizes: [10, 90], share: 100 },
  { name: 'long ones have the same', sizes: [200, 300], share: 50 },
  { name: 'a long one has what short ones leave', sizes: [500, 10, 20], share: 70 },
  { name: 'one that is too long has all', sizes: [101], share: 100 },
])
  test(`a fair share of 100 bytes: ${name}`, () => equal(fairShare(sizes, 100), share))
