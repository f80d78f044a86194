/**
 * Makes a data directory with an earlier commit of this repository and packs it: `node test/upgrade/record-data-directory.ts COMMIT FILE.tar.gz`.
 * Needs git with that commit, `tofu` on PATH, and node_modules. `upgrade.slow.test.ts` opens the result with the present version.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { workerPoolResource } from '../../src/api/index.ts'
import { namespaceResource, secretResource } from '../../src/kubernetes/client/index.ts'
import { checkOutVersion } from '../support/earlier-version.ts'
import { startUp } from '../support/oarlock-process.ts'
import { condition, isReady, StackFixture } from '../support/stacks.ts'
import { recordedStacks } from './recorded-stacks.ts'

const [commit = '', target = ''] = process.argv.slice(2)
const work = mkdtempSync(join(tmpdir(), 'oarlock-record-'))
try {
  const checkout = join(work, 'checkout')
  const dataDir = join(work, 'data')
  const program = checkOutVersion(commit, checkout)
  const ledger = join(work, 'ledger')
  const flags = ['--data', dataDir, '--listen', '127.0.0.1:0', addressFlag(program), '127.0.0.1:0']
  const oarlock = await startUp(program, dataDir, flags, { LEDGER_FILE: ledger })
  const { client } = oarlock
  await client.resource(workerPoolResource).patch('default', { spec: { engineEnvironment: ['LEDGER_FILE'] } }, { type: 'merge' })
  await client.resource(namespaceResource).create({ metadata: { name: 'team' } })
  await client
    .resource(secretResource)
    .create({ metadata: { name: 'password', namespace: 'team' }, stringData: { value: 'not-in-any-log' } })
  const stacks = new StackFixture(client, 'team')
  for (const [name, spec] of Object.entries(recordedStacks)) await stacks.create(name, spec)
  for (const name of Object.keys(recordedStacks)) {
    const wanted = name === 'waiting' ? 'approval' : 'Ready'
    await stacks.until(name, wanted, stack =>
      name === 'waiting' ? condition(stack, 'AwaitingApproval')?.status === 'True' : isReady(stack),
    )
  }
  process.stdout.write(`ledger of the recording:\n${readFileSync(ledger, 'utf8')}`)
  await oarlock.stop()
  mkdirSync(join(resolve(target), '..'), { recursive: true })
  // Caches are made again.
  execFileSync('tar', ['czf', resolve(target), '--exclude=./cache', '--exclude=*.sock', '--exclude=./runs', '-C', dataDir, '.'])
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

/** `--health-address` was `--http` until 22 November 2026. */
function addressFlag(program: string): string {
  const help = execFileSync(process.execPath, [program, 'up', '--help'], { encoding: 'utf8' })
  return help.includes('--health-address') ? '--health-address' : '--http'
}
