/** In Chromium: the pages of what executes Runs, with rows that no cache has made; and all tables of the sample fleet of a real `oarlock up`. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import type { PoolRow } from '../../src/console/protocol/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { checkLooks } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { startConsolePage } from '../support/console-page.ts'
import { eventually } from '../support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startUp } from '../support/oarlock-process.ts'
import { runOarlock, runProgram, skipWithout, skipWithoutTerraformEngine } from '../support/run-program.ts'
import { sampleLauncher } from '../support/sample-launcher.ts'

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
    await console_?.close()
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
    await page.getByRole('img', { name: /^Workers, highest in 10s: desired/ }).waitFor()
    await page.locator('.chart', { hasText: 'Workers highest in 10s' }).waitFor()
    await page.getByRole('button', { name: 'Day' }).click()
    await page.getByRole('img', { name: /^Workers, highest in 1m: desired/ }).waitFor()
    const decisions = page.locator('.scalings li')
    equal(await decisions.count(), 7)
    equal(await decisions.first().locator('span').nth(1).textContent(), '6 Runs queued, 3 workers busy: limited to its maximum of 8')
  })

  test('pages have no violation of accessibility rules and fit a phone, in both colours', async () => {
    await checkLooks(
      page,
      ['', 'pools', 'pools/default', 'workers', 'controllers', 'partitions'],
      async path => {
        await page.goto(`${console_.url}${path}`)
        await page.locator('main :is(tbody tr, .plot canvas)').first().waitFor()
      },
      {
        shown: async look => screenshots && (await page.screenshot({ path: join(screenshots, `${look.replace(/[ /]/g, '-')}.png`) })),
      },
    )
  })
})

const skipSample = withoutChromium || skipWithout('kubectl') || skipWithout('git') || skipWithoutTerraformEngine

/** As far as it is counted here. */
type Listed = {
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

describe('the sample fleet', { skip: skipSample, timeout: 240_000 }, () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  let browser: Browser
  let page: Page

  before(async () => {
    const flags = ['--sample', '--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0']
    oarlock = await startUp(sampleLauncher(), dataDir, flags)
    await eventually(async () => /13 of 13 Stacks as expected/.test(oarlock.output()) || undefined, 'the sample', 120_000)
    // Nothing starts Runs from here on: the other Stacks have no interval.
    await runOarlock(['suspend', 'policy', '-n', 'platform', '--kubeconfig', oarlock.kubeconfig])
    browser = await launchChromium()
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    page.setDefaultTimeout(20_000)
    const { stdout } = await runOarlock(['console', '--data', dataDir])
    await page.goto(stdout.trim())
    await page.getByText('Needs attention').waitFor()
  })
  after(async () => {
    await browser?.close()
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  const open = async (path: string) => {
    await page.goto(`${oarlock.httpUrl}/console/${path}`)
    await page.locator('main h1').waitFor()
  }
  const kubectlGet = async (resource: string): Promise<readonly Listed[]> => {
    const { stdout } = await runProgram('kubectl', ['--kubeconfig', oarlock.kubeconfig, 'get', resource, '-A', '-o', 'json'])
    return (JSON.parse(stdout) as { items: Listed[] }).items
  }
  /** Of the chips of the table that is shown. */
  const chips = async () =>
    Object.fromEntries(
      (await page.locator('.chips .chip').allInnerTexts())
        .map(text => text.split(/\s*\n\s*/).reverse())
        .map(([count = '', name = '']) => [name, Number(count)]),
    )
  const isTrue =
    (type: string) =>
    ({ status }: Listed) =>
      status?.conditions?.some(one => one.type === type && one.status === 'True') === true
  const countBy = (items: readonly Listed[], nameOf: (item: Listed) => string) => {
    const counts: Record<string, number> = {}
    for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1
    return counts
  }

  test('every table has as many rows as kubectl get -A lists objects, by state too', async () => {
    for (const [path, resource, nameOf] of [
      [
        'stacks',
        'stacks',
        (stack: Listed) => (isTrue('AwaitingApproval')(stack) ? 'Awaiting approval' : isTrue('Ready')(stack) ? 'Ready' : 'Failed'),
      ],
      ['runs', 'runs', ({ status }: Listed) => status?.phase ?? 'Queued'],
      ['workers', 'workers', undefined],
      ['pools', 'workerpools', undefined],
      ['tenants', 'tenants', undefined],
    ] as const) {
      await open(path)
      // A Run of policy may have been active when it was suspended: it ends while both are read.
      await eventually(
        async () => {
          const items = await kubectlGet(resource)
          const shown = { total: Number(await page.locator('.total').textContent()), ...(nameOf && { states: await chips() }) }
          return { path, shown, listed: { total: items.length, ...(nameOf && { states: countBy(items, nameOf) }) } }
        },
        ({ shown, listed }) => isDeepStrictEqual(shown, listed),
      )
    }
    await open('')
    const tile = page.locator('.tile', { hasText: 'Stacks' })
    equal(await tile.locator('.tile-value').textContent(), String((await kubectlGet('stacks')).length))
  })

  test('what failed leads to the line of the log with the reason', async () => {
    await open('')
    const failed = page.locator('.attention li', { hasText: 'Failed' })
    await failed.getByRole('link', { name: 'lab/misspelled' }).click()
    await page.locator('.run-list a').first().click()
    await page.getByText('Apply of Stack misspelled').waitFor()
    await page.locator('.log-line', { hasText: 'a number is required' }).first().waitFor()
  })

  test('Tenants count the Stacks of their namespaces, also the Tenant that has only the name of one', async () => {
    await open('tenants')
    const rows = page.locator('tbody tr')
    await rows.nth(1).waitFor()
    const cells = async (index: number) => await rows.nth(index).locator('td').allTextContents()
    const [lab, platform] = [await cells(0), await cells(1)]
    deepEqual([lab[0], lab[5]], ['lab', '4'])
    deepEqual([platform[0], platform[5]], ['platform', '5'])
    await page.getByRole('link', { name: 'platform' }).click()
    await page.getByText('5 of 13').waitFor()
  })

  test('a suspended Stack that is Ready shows both; a pool shows its own condition', async () => {
    await open('stacks/platform/policy')
    await page.locator('.page-header').getByText('suspended').waitFor()
    await page.locator('.page-header').getByText('Ready').waitFor()
    await open('pools/default')
    equal((await page.locator('.conditions li > span:nth-child(2)').textContent())?.trim(), 'workers can be started')
  })

  test('on a phone the plan of shop/database is read and approved, and its Run followed to its end', async () => {
    await page.setViewportSize({ width: 360, height: 740 })
    await open('')
    await page.locator('.attention').getByRole('link', { name: 'shop/database' }).click()
    await page.getByText('Plan: 2 to add, 0 to change, 0 to destroy.').waitFor()
    await page.getByRole('button', { name: 'Approve the plan' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Approve the plan' }).click()
    await dialog.getByText(/plan [0-9a-f]{12} approved/).waitFor()
    await dialog.locator('footer').getByRole('button', { name: 'Close' }).click()
    await page
      .locator('.run-list')
      .getByRole('link', { name: /^database-.*-2$/ })
      .click()
    // A worker starts, and its engine, which takes long where others use the processors.
    await page.locator('.page-header').getByText('Succeeded').waitFor({ timeout: 60_000 })
    await page.locator('.log-line', { hasText: 'Succeeded: 2 added' }).waitFor()
  })
})
