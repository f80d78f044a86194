import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { playScenario } from './scenario.testing.ts'

// OARLOCK_REWRITE=1 rewrites the files with the actual output: review the diff before you commit it.
const directory = join(import.meta.dirname, 'testdata')

describe('Stack scenarios on virtual time', () => {
  for (const file of readdirSync(directory).sort()) {
    test(file.replace('.txt', '').replaceAll('-', ' '), () => {
      const path = join(directory, file)
      const text = readFileSync(path, 'utf8')
      const played = playScenario(text)
      if (process.env.OARLOCK_REWRITE === '1') writeFileSync(path, played)
      else assert.equal(played, text)
    })
  }
})
