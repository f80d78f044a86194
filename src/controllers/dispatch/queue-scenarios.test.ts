import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { playQueueScenario } from './queue-scenario.testing.ts'

// OARLOCK_REWRITE=1 writes the actual output into the files. Review the difference before you commit it.
const directory = join(import.meta.dirname, 'testdata')

describe('queue scenarios on virtual time', () => {
  for (const file of readdirSync(directory).sort()) {
    test(file.replace('.txt', '').replaceAll('-', ' '), () => {
      const path = join(directory, file)
      const text = readFileSync(path, 'utf8')
      const played = playQueueScenario(text)
      if (process.env.OARLOCK_REWRITE === '1') writeFileSync(path, played)
      else assert.equal(played, text)
    })
  }
})
