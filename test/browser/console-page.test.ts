/** The console's page in Chromium, with the console's server and 10,000 rows that no cache has made. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { checkLooks } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { runRowOf, stackRowOf, startConsolePage } from '../support/console-page.ts'
import { eventually } from '../support/eventually.ts'

const stacks = 10_000

describe('the page in a browser', { skip: withoutChromium }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-console-page-'))
  let page: Page
  let context: BrowserContext
  let browser: Browser
  let console_: Awaited<ReturnType<typeof startConsolePage>>
  const problems: string[] = []

  before(async () => {
    console_ = await startConsolePage(directory, { stacks })
    for (let index = 0; index < 300; index++) console_.projections.tables.runs.set(runRowOf(index, Date.now()))
    browser = await launchChromium()
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    page = await context.newPage()
    const watch = (opened: Page) => {
      opened.on('pageerror', error => problems.push(error.stack ?? error.message))
      opened.on('console', entry => {
        if (/Content Security Policy/.test(entry.text())) problems.push(entry.text())
      })
    }
    watch(page)
    context.on('page', watch)
    await page.goto(console_.link())
    await page.getByText('Needs attention').waitFor()
  })
  after(async () => {
    await browser?.close()
    await console_?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const open = async (path: string, on = page) => {
    await on.goto(`${console_.url}${path}`)
    await on.locator('tbody tr:not(.placeholder)').first().waitFor()
  }
  const change = (index: number, resources: number) =>
    console_.projections.tables.stacks.set({ ...stackRowOf(index, Date.now()), resources })
  const firstRow = (on: Page) => on.locator('tbody tr').first()

  test('a link signs in, and its token is neither in the address nor in the history', async () => {
    equal(page.url(), console_.url)
    await page.goBack()
    await page.goForward()
    await page.getByText('Needs attention').waitFor()
    ok(!page.url().includes('token'))
  })

  test('a link that is opened in an open page is used, and leaves the address too', async () => {
    const link = console_.link()
    await page.goto(link)
    await page.waitForURL(url => !url.href.includes('token'))
    await page.getByText('Needs attention').waitFor()
  })

  test('only the visible rows of 10,000 are in the document, wherever one scrolls', async () => {
    await open('stacks')
    const rows = page.locator('tbody tr')
    equal(await page.locator('table').getAttribute('aria-rowcount'), String(stacks + 1))
    const places = [
      { share: 0.5, rowIndex: 5_010 },
      { share: 1, rowIndex: stacks + 1 },
      { share: 0, rowIndex: 2 },
    ]
    for (const { share, rowIndex } of places) {
      await page.locator('.table-scroll').evaluate((element, to) => {
        element.scrollTop = element.scrollHeight * to
      }, share)
      await page.locator(`tbody tr[aria-rowindex="${rowIndex}"]:not(.placeholder)`).waitFor()
      ok((await rows.count()) < 60, `${await rows.count()} rows at ${share}`)
    }
    equal(await page.locator('tbody tr.placeholder').count(), 0)
  })

  test('when a row changes, the elements of no other row change', async () => {
    await open('stacks')
    const changed = await page.evaluate(() => {
      const rows = new Set<string>()
      new MutationObserver(records => {
        for (const { target } of records) {
          const row = (target instanceof Element ? target : target.parentElement)?.closest('tr')
          // Ages change with time.
          if (row && !target.parentElement?.closest('time')) rows.add(row.getAttribute('aria-rowindex') ?? '')
        }
      }).observe(document.querySelector('tbody') as Element, { subtree: true, childList: true, characterData: true, attributes: true })
      Object.assign(window, { changedRows: rows })
      return rows.size
    })
    equal(changed, 0)
    // In the order of keys the second Stack is the 41st: namespaces repeat every 40.
    change(40, 4_321)
    await page.getByText('4,321').waitFor()
    deepEqual(await page.evaluate(() => [...(window as unknown as { changedRows: Set<string> }).changedRows]), ['3'])
  })

  test('keys focus the filter, move over the rows, open one, and show the help', async () => {
    await open('stacks')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.locator('tr.active[aria-rowindex="2"]').waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Next row').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Filter')
    await page.keyboard.type('state:fa')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(/filter=state%3AFailed/)
    await page.getByText('1,000 of 10,000').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/stacks\/team-\d\d\/service-\d+$/)
  })

  test('chips, order and saved views are in the address; an invalid filter names what is wrong', async () => {
    await open('stacks')
    await page.getByRole('button', { name: /^Drifted/ }).click()
    await page.waitForURL(/filter=state%3Adrifted/)
    await page.getByRole('button', { name: 'Resources' }).click()
    await page.getByRole('button', { name: 'Resources' }).click()
    await page.waitForURL(/sort=-resources/)
    equal(await page.getByRole('columnheader', { name: 'Resources' }).getAttribute('aria-sort'), 'descending')
    await page.getByText('Views', { exact: true }).click()
    await page.getByLabel('Name of the view').fill('drift')
    await page.getByRole('button', { name: 'Save' }).click()
    await open('stacks')
    await page.getByText('Views', { exact: true }).click()
    await page.getByRole('link', { name: 'drift', exact: true }).click()
    await page.waitForURL(/filter=state%3Adrifted&sort=-resources/)
    const filter = page.getByRole('combobox', { name: 'Filter' })
    await filter.fill('bogus:1')
    await filter.press('Enter')
    match((await page.locator('.filter .problem').textContent()) ?? '', /unknown field "bogus"/)
  })

  test('a bulk action shows its number before, and why it was rejected; it cannot approve plans', async () => {
    await open('stacks?filter=state:awaitingapproval')
    await page.getByRole('checkbox', { name: 'Select team-08/service-00008' }).check()
    equal(await page.getByRole('button', { name: /^Approve/ }).count(), 0)
    await page.getByRole('button', { name: 'Suspend', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: 'Suspend 1 Stack' }).waitFor()
    const [sent] = await Promise.all([page.waitForRequest(/api\/bulk$/), dialog.getByRole('button', { name: 'Suspend 1 Stack' }).click()])
    const { action, expected, stacks } = sent.postDataJSON() as { action: string; expected: number; stacks: { key: string }[] }
    deepEqual([action, expected, stacks.map(({ key }) => key)], ['suspend', 1, ['team-08/service-00008']])
    // The request as a whole is rejected, and the dialog shows why.
    await dialog.getByText('this server has no objects').waitFor()
    await dialog.getByRole('button', { name: 'Back' }).click()
    await page.getByRole('button', { name: 'Select all 1,000' }).click()
    await page.getByText('All 1,000 that match are selected').waitFor()
  })

  test('the result of a bulk action lists failures first, and the rest when it is asked for', async () => {
    console_.projections.tables.stacks.set({ ...stackRowOf(0, Date.now()), suspended: true })
    await open('stacks')
    await page.getByRole('checkbox', { name: 'Select team-00/service-00000' }).check()
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.locator('.listed li', { hasText: 'team-00/service-00000' }).getByText('suspended', { exact: true }).waitFor()
    await dialog.getByText('applies the changes to the real infrastructure').waitFor()
    // Every third has failed: 1,100 of 3,300.
    const results = Array.from({ length: 3_300 }, (_, index) =>
      index % 3 === 0
        ? { key: `a/s${index}`, ok: false, code: 409, reason: 'Conflict', message: 'the Stack is suspended' }
        : { key: `a/s${index}`, ok: true, message: 'run requested' },
    )
    await page.route('**/api/bulk', route => route.fulfill({ json: { results } }))
    await dialog.getByRole('button', { name: 'Run 1 Stack' }).click()
    await dialog.getByText('2,200 requested, 1,100 failed').waitFor()
    await page.unroute('**/api/bulk')
    const [failed, done] = [dialog.locator('.results').first(), dialog.locator('details .results')]
    equal(await failed.locator('li').count(), 1_000)
    equal(await failed.locator('li').first().getByRole('link').getAttribute('href'), '/console/stacks/a/s0')
    equal(await failed.locator('li .badge', { hasText: 'Failed' }).count(), 1_000)
    await dialog.getByText('1,000 of 1,100 are listed.').waitFor()
    await dialog.getByRole('button', { name: 'Show 100 more' }).first().click()
    equal(await failed.locator('li').count(), 1_100)
    await dialog.getByText('Requested: 2,200').click()
    equal(await done.locator('li').count(), 100)
    await dialog.getByRole('button', { name: 'Show 100 more' }).click()
    equal(await done.locator('li').count(), 200)
    await dialog.locator('footer').getByRole('button', { name: 'Close' }).click()
    console_.projections.tables.stacks.set(stackRowOf(0, Date.now()))
  })

  test('a group of the overview leads to exactly its Stacks, and the tile to all of them', async () => {
    /** The number of a link of the overview, and of the rows that it leads to. */
    const numbers = async (link: Locator) => {
      await page.goto(console_.url)
      await page.getByText('Needs attention').waitFor()
      const number = /[\d,]+/.exec((await link.locator('strong, .tile-value').textContent()) ?? '')?.[0]
      await link.click()
      await page.waitForURL(/filter=/)
      await page.locator('tbody tr:not(.placeholder)').first().waitFor()
      return [number, ((await page.locator('.total').textContent()) ?? '').replace(' of 10,000', '')] as const
    }
    const groups = page.locator('.attention > li')
    await page.goto(console_.url)
    await groups.nth(3).waitFor()
    deepEqual(await groups.locator('> .badge').allInnerTexts(), ['Failed', 'Awaiting approval', 'Stuck', 'Drifted'])
    const links = [0, 1, 2, 3].map(index => groups.nth(index).locator('a').first())
    // Once a minute more Stacks are stuck.
    for (const link of [...links, page.getByRole('link', { name: /^Need attention/ })])
      await eventually(async () => {
        const [number, rows] = await numbers(link)
        return number !== undefined && number === rows
      }, 'as many rows as the overview counts')
  })

  test('Recent Runs have headings; a row leads to its Run, and the name of its Stack to the Stack', async () => {
    await page.goto(console_.url)
    const table = page.getByRole('table')
    await table.waitFor()
    deepEqual(await table.locator('th').allInnerTexts(), ['Phase', 'Stack', 'Run', 'Plan', 'Duration', 'Updated'])
    const row = table.locator('tbody tr').first()
    const name = (await row.locator('.row-link').getAttribute('title')) ?? ''
    await row.click({ position: { x: 5, y: 5 } })
    await page.waitForURL(`${console_.url}runs/${name}`)
    await page.goBack()
    await row.getByRole('link', { name: /^team-/ }).click()
    await page.waitForURL(`${console_.url}stacks/${name.replace(/-1$/, '')}`)
  })

  const isCut = (cells: Locator) => cells.evaluateAll(all => all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length)

  test('the table of Runs shows how much a plan destroys, whatever it adds and changes', async () => {
    const plan = { add: 123_456, change: 999, destroy: 1_234 }
    console_.projections.tables.runs.set({ ...runRowOf(0, Date.now()), plan })
    await open('runs')
    const cell = page.locator('tbody td', { hasText: '+120K ~999 −1.2K' }).first()
    await cell.waitFor()
    equal(await isCut(cell), 0)
    equal(await cell.locator('.plan').getAttribute('title'), '123456 to add, 999 to change, 1234 to destroy')
    console_.projections.tables.runs.set(runRowOf(0, Date.now()))
  })

  test('Recent Runs do not cut the number of a Run, and the message of a Stack has the free width', async () => {
    console_.projections.tables.runs.set({ ...runRowOf(0, Date.now()), type: 'Destroy', epoch: 1_234 })
    await page.goto(console_.url)
    const runs = page.locator('.run-list')
    await runs.getByText('Destroy #1234').waitFor()
    equal(await isCut(runs.locator('.row-link')), 0)
    const columns = runs.locator('tr > :nth-child(3)')
    equal(new Set(await columns.evaluateAll(all => all.map(cell => cell.getBoundingClientRect().left))).size, 1)
    console_.projections.tables.runs.set(runRowOf(0, Date.now()))
    await open('stacks?filter=state:ready')
    const message = await page.locator('tbody td', { hasText: 'Applied: 3 added, 0 changed, 0 destroyed' }).first().boundingBox()
    ok(message && message.width > 400, `${message?.width} px`)
  })

  test('a table is not higher than its rows, and a phone shows whether a Run plans or applies, and the help', async () => {
    await open('runs?filter=name:service-00001-1')
    const box = await page.locator('.table-scroll').boundingBox()
    ok(box && box.height < 100, `${box?.height} px`)
    await page.setViewportSize({ width: 360, height: 740 })
    await page.locator('.card', { hasText: 'Apply' }).waitFor()
    await open('runs?filter=name:service-00000-1')
    await page.locator('.card', { hasText: 'Plan' }).waitFor()
    await page.goto(console_.url)
    await page.locator('.run-list').getByText('Plan #1').first().waitFor()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Help' }).click()
    await page.getByRole('dialog').getByText('-engine:pulumi').waitFor()
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  test('tabs share one stream; when its tab closes, another continues it', async () => {
    await open('stacks')
    const other = await context.newPage()
    const opened: string[] = []
    other.on('request', request => {
      if (request.url().includes('/api/stream')) opened.push(request.url())
    })
    await open('stacks', other)
    change(0, 1_111)
    for (const tab of [page, other]) await firstRow(tab).getByText('1,111').waitFor()
    deepEqual([...opened], [])
    await page.close()
    await eventually(() => opened.some(url => url.includes('api/stream?resume=')), 'the stream to be continued')
    change(0, 2_222)
    await firstRow(other).getByText('2,222').waitFor()
    page = other
  })

  test('a page that lost its connection shows how old it is, and what has changed once it is back', async () => {
    await open('stacks')
    const { server } = console_
    const { port } = server.address() as AddressInfo
    await new Promise(resolve => {
      server.close(resolve)
      server.closeAllConnections()
    })
    await page.getByText(/Reconnecting/).waitFor()
    await page.getByText(/updated \d+s ago/).waitFor()
    change(0, 3_333)
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
    await firstRow(page).getByText('3,333').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('pages have no violation of accessibility rules and fit a phone, in both colours', async () => {
    await checkLooks(page, ['', 'stacks', 'runs', 'queue', 'workers', 'pools'], async path => {
      await page.goto(`${console_.url}${path}`)
      await page.locator('main :is(.table-scroll, .notice, .tiles)').first().waitFor()
    })
  })

  test('no script failed, and nothing violated the Content-Security-Policy', () => {
    deepEqual(problems, [])
  })

  test('signing out in one tab ends the session of all', async () => {
    await page.setViewportSize({ width: 1280, height: 740 })
    await open('stacks')
    const other = await context.newPage()
    await open('runs', other)
    await page.getByRole('button', { name: 'Sign out' }).click()
    for (const tab of [page, other]) await tab.getByLabel('Bearer token').waitFor()
    await page.getByLabel('Bearer token').fill('test-token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    for (const tab of [page, other]) await tab.locator('tbody tr:not(.placeholder)').first().waitFor()
  })
})
