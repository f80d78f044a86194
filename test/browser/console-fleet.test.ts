/** The pages of what executes Runs in Chromium, with rows that no cache has made. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { PoolRow } from '../../src/console/protocol/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { violationsOf } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { startConsolePage } from '../support/console-page.ts'

const screenshots = process.env.OARLOCK_SCREENSHOTS

describe('the pages of the fleet', { skip: withoutChromium, timeout: 120_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-console-fleet-'))
  let page: Page
  let browser: Browser
  let console_: Awaited<ReturnType<typeof startConsolePage>>

  const pool: PoolRow = {
    ...{ key: 'default', name: 'default', mode: 'Pod', lifecycle: 'OneShot', min: 0, max: 8, desired: 8, workers: 6, busy: 5, queued: 14 },
    ...{ ready: false, reason: 'QuotaExceeded', message: 'pods "default-41" is forbidden: exceeded quota' },
  }

  before(async () => {
    // What the API server would have: the pool, whose page is read with the rights of the user.
    const object = {
      metadata: { name: 'default' },
      spec: { drainGrace: '10m' },
      status: {
        problem: 'shop: QuotaExceeded',
        conditions: [
          { type: 'Ready', status: 'False', reason: 'QuotaExceeded', message: pool.message, lastTransitionTime: new Date().toISOString() },
        ],
      },
    }
    const client = { resource: () => ({ get: async () => object }), close: async () => {} } as unknown as Client
    console_ = await startConsolePage(directory, { stacks: 1, connect: async () => client })
    const { tables } = console_.projections
    tables.pools.set(pool)
    for (const [number, name] of ['home', 'east', 'west'].entries())
      tables.partitions.set({
        ...{
          key: name,
          name,
          number,
          roles: number === 0 ? ['Home', 'Tenants'] : ['Tenants', 'Resources'],
          server: `https://${name}.example:6443`,
        },
        ...(name === 'west' ? { ready: false, reason: 'KindsDiffer', message: 'its kinds are of another version' } : { ready: true }),
      })
    const nowMs = Date.now()
    tables.controllers.set({
      ...{ key: 'oarlock-system/oarlock-stacks', name: 'oarlock-stacks', holder: 'controller-7d9f_1', renewedMs: nowMs },
      ...{ leaseDurationMs: 15_000, transitions: 3 },
    })
    tables.workers.set({
      ...{ key: 'default-1', name: 'default-1', pool: 'default', phase: 'Busy', host: 'node-3', slots: 1, runs: ['shop/app-1'] },
      ...{ cordoned: true, createdMs: nowMs - 60_000 },
    })
    for (let tick = 360; tick >= 0; tick--) {
      const atMs = nowMs - tick * 10_000
      const busy = Math.round(3 + 3 * Math.sin(tick / 36))
      const values = {
        workers: busy + 1,
        busyWorkers: busy,
        queueLength: busy * 2,
        activeRuns: busy,
        oldestQueuedMs: busy * 9_000,
        runsSucceeded: busy,
        runsFailed: 1,
      }
      const own = { desired: busy + 2, workers: busy + 1, busy, queued: busy * 2 }
      console_.history.add({
        atMs,
        values: { ...values, ...Object.fromEntries(Object.entries(own).map(([name, value]) => [`pool/default/${name}`, value])) },
      })
      if (tick % 54 === 0)
        console_.history.add({
          atMs,
          scaling: { pool: 'default', atMs, from: busy, to: tick === 0 ? 8 : busy + 2, min: 0, max: 8, queued: busy * 2, busy },
        })
    }
    browser = await launchChromium()
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    await page.goto(console_.link())
    await page.getByText('Needs attention').waitFor()
  })
  after(async () => {
    await browser?.close()
    console_?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  test('partitions are shown where there are any, with what is wrong', async () => {
    await page.reload()
    await page.getByRole('link', { name: 'Partitions' }).click()
    const rows = page.locator('tbody tr')
    await rows.nth(2).waitFor()
    deepEqual(await rows.locator('td:nth-child(2)').allTextContents(), ['home', 'east', 'west'])
    ok((await rows.nth(2).textContent())?.includes('its kinds are of another version'))
  })

  test('a pool shows its size over time, why it wanted that size, and why it starts no worker', async () => {
    await page.goto(`${console_.url}pools`)
    await page.getByRole('link', { name: 'default', exact: true }).click()
    await page.getByText('shop: QuotaExceeded').waitFor()
    await page.getByRole('img', { name: /^Workers: desired/ }).waitFor()
    const decisions = page.locator('.scalings li')
    equal(await decisions.count(), 7)
    equal(await decisions.first().locator('span').nth(1).textContent(), '6 Runs queued, 3 workers busy: limited to its maximum of 8')
  })

  test('pages have no violation of accessibility rules and fit a phone, in both colours', async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 360]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 740 })
        for (const path of ['', 'pools', 'pools/default', 'workers', 'controllers', 'partitions']) {
          await page.goto(`${console_.url}${path}`)
          await page.locator('main :is(tbody tr, .plot canvas)').first().waitFor()
          deepEqual(await violationsOf(page), [], `${path} ${width} ${colorScheme}`)
          ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${path} is wider than ${width}`)
          if (screenshots) await page.screenshot({ path: join(screenshots, `${path.replace('/', '-')}-${width}-${colorScheme}.png`) })
        }
      }
  })
})
