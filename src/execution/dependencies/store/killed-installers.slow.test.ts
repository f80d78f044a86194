import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { seededRandom, sha256 } from '../../../kubernetes/util/index.ts'
import { DependencyStore } from './dependency-store.ts'
import { startInstaller } from './start-installer.testing.ts'

const rounds = 30
/** The same seed has the same times of kills. */
const seed = Number(process.env.OARLOCK_TEST_SEED ?? Date.now() % 1e9)

test(`installers that are killed at random points leave nothing that counts, and one of those that wait takes over (seed ${seed})`, async t => {
  const random = seededRandom(seed)
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const directory = join(base, 'store')
  const log = join(base, 'log')
  const store = new DependencyStore({ directory, domain: 'test' })
  let installed = 0
  for (let round = 0; round < rounds; round++) {
    const digest = sha256(`round ${round}`)
    // An install takes 100 ms or more: before, while and after the tree is stored.
    const crashAfterMs = Math.round(random() * 250)
    const results = await Promise.all([
      startInstaller(directory, digest, log, crashAfterMs),
      startInstaller(directory, digest, log),
      startInstaller(directory, digest, log),
    ])
    deepEqual(
      results.slice(1).map(({ exitCode }) => exitCode),
      [0, 0],
      `seed ${seed}, round ${round}: killed after ${crashAfterMs} ms`,
    )
    const tree = await store.acquire(digest, undefined, { isThorough: true })
    equal(readdirSync(DependencyStore.treePath(tree!, 0)).length, 301)
    await tree!.release()
    installed = readFileSync(log, 'utf8').trim().split('\n').length
  }
  t.diagnostic(`${installed} installs completed in ${rounds} rounds`)
  ok(installed <= rounds, `each digest was installed once, found ${installed} installs in ${rounds} rounds, seed ${seed}`)
  // An installer that is killed right after it has stored the tree leaves what it reported, which is removed when it is old.
  ok(readdirSync(join(directory, 'test')).filter(name => name.endsWith('.progress')).length <= rounds)
})
