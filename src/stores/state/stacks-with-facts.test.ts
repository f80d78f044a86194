import { equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StacksWithFacts } from './stacks-with-facts.ts'

describe('the Stacks of which a store may have facts', () => {
  test('are those of the file and those that were written, until nothing is found', () => {
    const stacks = new StacksWithFacts(['stored'])
    equal(stacks.mayHave('stored'), true)
    equal(stacks.mayHave('other'), false)
    stacks.add('other')
    equal(stacks.mayHave('other'), true)
    stacks.beforeRead('other')(true)
    equal(stacks.mayHave('other'), true)
    stacks.beforeRead('other')(false)
    equal(stacks.mayHave('other'), false)
  })

  test('include one that is written while it is read', () => {
    for (const before of [[], ['a']]) {
      const stacks = new StacksWithFacts(before)
      const afterRead = stacks.beforeRead('a')
      stacks.add('a')
      afterRead(false)
      equal(stacks.mayHave('a'), true)
    }
  })

  test('do not include a deleted Stack', () => {
    const stacks = new StacksWithFacts(['a'])
    stacks.delete('a')
    equal(stacks.mayHave('a'), false)
  })
})
