/**
 * Takes the pictures of the console in the README: `node scripts/take-screenshots.ts`
 *
 * Starts `oarlock up --sample` with two workers and waits until the sample Stacks are in their expected states. Then one of them drifts, and
 * Runs of others are requested for {@link rounds} rounds, so that charts have values and Runs are queued and active in the picture. Needs
 * Chromium and Terraform, and takes two minutes.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { annotations, formatRunRequest, stackResource } from '../src/api/index.ts'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import { launchChromium, withoutChromium } from '../test/support/chromium.ts'
import { eventually } from '../test/support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from '../test/support/oarlock-process.ts'

const maxBytes = 200_000
const oarlock = join(import.meta.dirname, '../bin/oarlock.js')
const directory = join(import.meta.dirname, '../docs/images')
const rounds = 5
const roundMs = 20_000
/** Their Runs are requested in each round. */
const requested = [
  ['shop', 'network'],
  ['shop', 'cluster'],
  ['shop', 'app'],
  ['lab', 'certificate'],
  ['lab', 'flaky'],
] as const

if (withoutChromium) throw new Error(withoutChromium)
const dataDir = makeDataDir()
const browser = await launchChromium()
const app = await startOarlock(dataDir, ['--sample', '--max-workers', '2'])
try {
  const stacks = app.client.resource(stackResource)
  const request = (namespace: string, name: string, type: 'plan' | 'apply', round = 0) =>
    stacks.patch(
      name,
      { metadata: { annotations: { [annotations.requestedRun]: formatRunRequest(type, `screenshots-${round}`, undefined) } } },
      { type: 'merge', namespace },
    )
  await eventually(async () => app.output().includes('13 of 13 Stacks as expected') || undefined, 'the sample', 120_000)
  // Its drift is reported instead of corrected, and found by a plan.
  await stacks.patch('policy', { spec: { drift: 'Report' } }, { type: 'merge', namespace: 'platform' })
  await app.client
    .resource(configMapResource)
    .patch('quota-policy', { data: { max_replicas: '20' } }, { type: 'merge', namespace: 'platform' })
  await request('platform', 'policy', 'plan')

  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(execFileSync(process.execPath, [oarlock, 'console', '--data', dataDir], { encoding: 'utf8' }).trim())
  await page.getByText('Drifted').first().waitFor()
  for (let round = 1; round <= rounds; round++) {
    await Promise.all(requested.map(([namespace, name]) => request(namespace, name, 'apply', round)))
    if (round < rounds) await sleep(roundMs)
  }
  await page.getByRole('link', { name: /^Workers .* 2 busy/ }).waitFor()
  await take(page, 'console-overview.png')

  await page.emulateMedia({ colorScheme: 'dark' })
  await page.goto(`${app.httpUrl}/console/stacks/shop/database`)
  await page.getByRole('button', { name: 'Approve' }).first().waitFor()
  await take(page, 'console-plan.png')
} finally {
  await browser.close()
  await app.stop()
  removeDirectory(dataDir)
}

async function take(page: Page, name: string): Promise<void> {
  const picture = await page.screenshot({ animations: 'disabled' })
  if (picture.length > maxBytes) throw new Error(`${name} has ${picture.length} bytes; the limit is ${maxBytes}`)
  writeFileSync(join(directory, name), picture)
}
