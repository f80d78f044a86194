import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { firstWindow, windowFor } from './row-window.ts'

test('the window stays while there are rows around those that are visible', () => {
  equal(windowFor(firstWindow, 0, 40), firstWindow)
  equal(windowFor(firstWindow, 100, 140), firstWindow)
  deepEqual(windowFor(firstWindow, 140, 180), { offset: 50, limit: 200 })
  deepEqual(windowFor(firstWindow, 9_000, 9_040), { offset: 8_900, limit: 200 })
})

test('whatever is visible is in its window', () => {
  let current = firstWindow
  for (let first = 0; first < 3_000; first += 7) {
    current = windowFor(current, first, first + 60)
    ok(current.offset <= first && first + 60 <= current.offset + current.limit, `${first} in ${JSON.stringify(current)}`)
    equal(windowFor(current, first, first + 60), current, 'a window that was just chosen is kept')
  }
})
