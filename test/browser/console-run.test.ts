/** The page of a Run in Chromium, on the console of a real all-in-one with Runs of engine `command`, and one of engine `ansible`. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { type Run, runResource, type Stack, stackResource } from '../../src/api/index.ts'
import { loadEngine } from '../../src/execution/engine/index.ts'
import { namespaceResource } from '../../src/kubernetes/client/index.ts'
import { checkLooks, violationsOf } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from '../support/oarlock-process.ts'
import { type NetworkProxy, startProxy } from '../support/proxy.ts'

const manyLines = 100_000
const ansible = await (await loadEngine('ansible')).detect(process.env)
const withoutAnsible = ansible.found ? false : `needs ansible-playbook: ${ansible.reasons.join(', ')}`

describe('the page of a Run', { skip: withoutChromium, timeout: 180_000 }, () => {
  const dataDir = makeDataDir()
  /** A Run of Stack `live` prints a line each 50 ms until this file exists. */
  const stopFile = join(dataDir, 'stop')
  let app: OarlockProcess
  let proxy: NetworkProxy
  let browser: Browser
  let context: BrowserContext
  let page: Page
  const problems: string[] = []

  before(async () => {
    app = await startOarlock(dataDir)
    await app.client.resource(namespaceResource).create({ metadata: { name: 'a' } })
    const shell = (script: string) => ['sh', '-c', script]
    const esc = '\\033'
    await makeStack('marked', shell(`printf '${esc}[31mred${esc}[0m <b onclick=x>bold</b> <script>window.hacked=1</script>\\n'; echo done`))
    await makeStack('many', shell(`seq -f 'line %.0f of many, with some text' 1 ${manyLines}`))
    await makeStack('live', shell(`i=0; while ! test -e ${stopFile}; do i=$((i+1)); echo "tick $i"; sleep 0.05; done`))
    await makeStack('long', shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after"))
    await makeStack('broken', shell('echo no luck; exit 1'))
    proxy = await startProxy(Number(new URL(app.httpUrl).port))
    browser = await launchChromium()
    context = await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] })
    page = await context.newPage()
    page.on('pageerror', error => problems.push(error.stack ?? error.message))
    page.on('console', entry => {
      if (/Content Security Policy/.test(entry.text())) problems.push(entry.text())
    })
    const headers = { authorization: `Bearer ${readFileSync(join(dataDir, 'console-token'), 'utf8').trim()}` }
    const links = await fetch(`${app.httpUrl}/console/api/links`, { method: 'POST', headers })
    await page.goto(`${base()}/console/#token=${((await links.json()) as { link: string }).link}`)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
  after(async () => {
    await browser?.close()
    proxy?.close()
    await app?.stop()
    removeDirectory(dataDir)
  })

  const base = () => `http://127.0.0.1:${proxy.port}`
  const makeStack = (name: string, apply: string[]) =>
    createStack(name, { engine: 'command', command: { apply }, source: { inline: { files: { a: '1' } } } })
  const createStack = (name: string, spec: Stack['spec']) =>
    app.client.resource(stackResource).create({ metadata: { namespace: 'a', name }, spec })
  const runsOf = async (stack: string) => {
    const { items } = await app.client.resource(runResource).list({ namespace: 'a', labelSelector: `oarlock.dev/stack=${stack}` })
    return items.sort((a, b) => a.spec.epoch - b.spec.epoch) as Run[]
  }
  const runIn = (stack: string, phases: readonly string[]) =>
    eventually(
      async () => (await runsOf(stack)).find(({ status }) => phases.includes(status?.phase ?? '')),
      `a Run of ${stack} in ${phases}`,
      60_000,
    )
  const open = async ({ metadata }: Run, hash = '') => {
    // Another page first: a change of what is behind `#` does not load the page.
    await page.goto('about:blank')
    await page.goto(`${base()}/console/runs/a/${metadata.name}${hash}`)
    await page.locator('.log-line').first().waitFor()
  }
  /** Whether the user sees the middle of the element. */
  const isOnScreen = (locator: Locator) =>
    locator.evaluate(element => {
      const { left, top, width, height } = element.getBoundingClientRect()
      const x = left + Math.min(width, innerWidth - left) / 2
      return element.contains(document.elementFromPoint(x, top + height / 2))
    })
  const shownLines = () => page.locator('.log-line .log-text').allTextContents()
  /** Waits until the page has all lines of the log: before, those that arrive may move what is measured. */
  const whenRead = async ({ status }: Run) => {
    await page.getByText(`${(status?.log?.lines ?? 0).toLocaleString('en-US')} lines`, { exact: true }).waitFor()
  }

  test('shows the phases with durations, what the Run has used, and its log as text', async () => {
    await open(await runIn('marked', ['Succeeded']))
    deepEqual(await page.locator('.timeline-label').allTextContents(), ['Queue', 'Start', 'Prepare', 'Plan', 'Apply'])
    match((await page.locator('.timeline .number').last().textContent()) ?? '', /^\d+ms$|^\d\.\d+s$/)
    // Without a cgroup its programs have ended before the first sample.
    await page.getByText(/^Peak memory$|^not measured: /).waitFor()
    equal(await page.locator('.facts').getByText('0 B', { exact: true }).count(), 0)
    const red = page.locator('.log .ansi-red')
    equal(await red.textContent(), 'red')
    const lines = await shownLines()
    ok(lines.includes('red <b onclick=x>bold</b> <script>window.hacked=1</script>'), lines.join('\n'))
    equal(await page.locator('.log b, .log script').count(), 0)
    equal(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked), undefined)
  })

  const lineCount = async () =>
    Number(/\d[\d,]*/.exec((await page.locator('.log').getAttribute('aria-label')) ?? '')?.[0].replaceAll(',', ''))
  const copyLog = async () => {
    // The result is shown for 2 s: the wait for it begins before the click.
    await Promise.all([page.getByText(/lines copied$/).waitFor(), page.getByRole('button', { name: 'Copy', exact: true }).click()])
    return await page.evaluate(() => navigator.clipboard.readText())
  }

  test('follows the log of an active Run, and has each line once after lost connections', async () => {
    const run = await runIn('live', ['Applying'])
    await open(run)
    await page.getByText(/lines, live/).waitFor()
    await page.locator('.facts dt', { hasText: 'Isolation' }).waitFor()
    equal(await page.getByText(/^not measured/).count(), 0)
    for (let time = 0; time < 2; time++) {
      const before = await lineCount()
      proxy.cut()
      await page.getByText(/lines, reconnecting/).waitFor()
      proxy.restore()
      await page.getByText(/lines, live/).waitFor()
      await eventually(async () => (await lineCount()) > before, 'more lines')
    }
    const ticks = [...(await copyLog()).matchAll(/^tick (\d+)$/gm)].map(([, number]) => Number(number))
    deepEqual(
      ticks,
      ticks.map((_, index) => index + 1),
    )
    const log = page.locator('.log')
    const isAtEnd = () => log.evaluate(({ scrollTop, scrollHeight, clientHeight }) => scrollHeight - scrollTop - clientHeight < 25)
    await eventually(
      async () => (await log.evaluate(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 100)) || undefined,
      'a long log',
    )
    ok(await isAtEnd())
    // Scrolling up ends it, the button continues it.
    await log.evaluate(element => element.scrollTo({ top: 0 }))
    await page.getByRole('button', { name: 'Follow', exact: true, pressed: false }).click()
    await eventually(isAtEnd, 'the end of the log')
  })

  test('cancels a Run, and shows its end', async () => {
    const run = await runIn('live', ['Applying'])
    await open(run)
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Cancel/ })
      .click()
    await page.getByRole('dialog').getByText('cancellation requested').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.page-header').getByText('Canceled').waitFor()
    await page.getByRole('button', { name: 'Cancel', exact: true }).and(page.locator('[aria-disabled="true"]')).waitFor()
    await eventually(async () => (await page.getByText(/lines, live/).count()) === 0, 'the end of the log')
    writeFileSync(stopFile, '')
  })

  test('a line has a link, which opens the log there', async () => {
    const run = await runIn('many', ['Succeeded'])
    await open(run, '#L50000')
    const target = page.locator('.log-line.target')
    await target.waitFor()
    equal(await target.locator('.log-number').textContent(), '50000')
    ok(await target.isVisible())
    await page.getByRole('link', { name: 'Line 50002', exact: true }).click()
    await page.waitForURL(/#L50002$/)
    await target.locator('.log-number', { hasText: /^50002$/ }).waitFor()
  })

  test('the tasks of Ansible are listed with what they did, and lead to their lines', { skip: withoutAnsible }, async () => {
    const playbook = `
- hosts: all
  gather_facts: false
  tasks:
    - { name: Greet, ansible.builtin.debug: { msg: hello } }
    - name: Write
      ansible.builtin.copy: { content: x, dest: ${join(dataDir, 'written')} }
    - { name: Leave out, ansible.builtin.debug: { msg: hello }, when: false }
    - { name: Never fail, ansible.builtin.command: 'false', changed_when: false, ignore_errors: true }
    - { name: Fail, ansible.builtin.command: 'false', check_mode: false }
`
    await createStack('tasks', {
      engine: 'ansible',
      source: { inline: { files: { 'site.yml': playbook } } },
      ansible: { playbooks: ['site.yml'], inventory: { hosts: { one: { ansible_connection: 'local' } } }, check: false },
    })
    await open(await runIn('tasks', ['Failed']))
    const tasks = page.getByRole('region', { name: 'Tasks' })
    await tasks.getByText('1 failed, 4 done', { exact: true }).waitFor()
    const items = await tasks.getByRole('listitem').allInnerTexts()
    deepEqual(
      items.map(item => item.replaceAll(/\s+/g, ' ').replace(/ [\d.]+(ms|s)$/, '')),
      ['failed Fail run', 'done Never fail run', 'done Leave out skip', 'done Write change', 'done Greet run'],
    )
    await tasks.getByRole('link', { name: 'Write' }).click()
    await page.locator('.log-line.target', { hasText: 'TASK [Write]' }).waitFor()
  })

  test('of 100,000 lines only the visible ones are in the document; the log is searched, folded, copied and downloaded', async () => {
    const run = await runIn('many', ['Succeeded'])
    await open(run)
    await page.getByText(/^100,0\d\d lines$/).waitFor()
    await whenRead(run)
    const search = page.getByRole('textbox', { name: 'Search the log' })
    await page.keyboard.press('/')
    ok(await search.evaluate(element => element === document.activeElement))
    await search.fill('LINE 99999 of')
    await search.press('Enter')
    await page.locator('.log-line.target mark', { hasText: /^line 99999 of$/ }).waitFor()
    await page.getByText('1 of 1', { exact: true }).waitFor()
    ok((await page.locator('.log-line').count()) < 130)
    await search.fill('no such text')
    await page.getByText('none', { exact: true }).waitFor()
    await search.fill('')
    await page.locator('.log').evaluate(element => element.scrollTo({ top: 0 }))
    await page.getByRole('button', { name: 'Phase Preparing', expanded: true }).click()
    await page.getByRole('button', { name: 'Phase Applying', expanded: true }).click()
    deepEqual((await page.locator('.log-line.phase .log-text').allTextContents()).slice(1), ['Planning', 'Applying … folded'])
    await page.getByRole('button', { name: 'Phase Applying', expanded: false }).click()

    const copied = await copyLog()
    match(copied, /\nline 100000 of many, with some text\n/)
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
    match(download.suggestedFilename(), /^a-many-[0-9a-f]+-1\.log$/)
    equal(readFileSync(await download.path(), 'utf8'), copied)
  })

  /** Of the log that is shown: rows of its lines beyond where they were expected to end, and how far it is from its end. */
  const layout = () =>
    page.locator('.log').evaluate(log => {
      const bottom = (selector: string) => (log.querySelector(selector) as HTMLElement).getBoundingClientRect().bottom
      const { scrollTop, scrollHeight, clientHeight, scrollWidth, clientWidth } = log
      return {
        rowsTooMany: Math.round((bottom('.log-shown') - bottom('.log-all')) / 20) + 0,
        belowPx: Math.round(scrollHeight - scrollTop - clientHeight),
        sidewaysPx: scrollWidth - clientWidth,
      }
    })

  test('lines are wrapped on request, in the next log too; the line of the address stays in its place, and the end is reached', async () => {
    await page.setViewportSize({ width: 360, height: 740 })
    const run = await runIn('many', ['Succeeded'])
    await open(run, '#L50000')
    await page.getByText(/^100,0\d\d lines$/).waitFor()
    await whenRead(run)
    const target = page.locator('.log-line.target')
    await target.waitFor()
    await eventually(async () => await isOnScreen(target), 'the line on the screen')
    /** Both in one step: what is above the log may change its height between two. */
    const place = () =>
      target.evaluate(line => {
        const [log, { top, bottom, height }] = [line.closest('.log')?.getBoundingClientRect(), line.getBoundingClientRect()]
        return { topPx: top - (log?.top ?? 0), belowPx: (log?.bottom ?? 0) - bottom, heightPx: height }
      })
    const placePx = async () => (await place()).topPx
    const beforePx = await placePx()
    ok((await layout()).sidewaysPx > 0)
    await page.getByRole('button', { name: 'Wrap', exact: true, pressed: false }).click()
    await page.locator('.log.wrapped').waitFor()
    // All lines above it have more rows now.
    ok(Math.abs((await placePx()) - beforePx) < 2, `${beforePx} px before, ${await placePx()} px after`)
    equal((await layout()).sidewaysPx, 0)
    await open(run, '#L77777')
    await page.getByRole('button', { name: 'Wrap', exact: true, pressed: true }).waitFor()
    await target.waitFor()
    equal(await target.locator('.log-number').textContent(), '77777')
    await whenRead(run)
    // The columns of a row are measured when the first lines have been drawn.
    await eventually(place, ({ topPx, belowPx, heightPx }) => topPx >= 0 && belowPx >= 0 && heightPx === 40)
    await page.locator('.log').evaluate(element => element.scrollTo({ top: element.scrollHeight }))
    await page.locator('.log-line', { hasText: 'line 100000 of many' }).waitFor()
    deepEqual(await layout(), { rowsTooMany: 0, belowPx: 0, sidewaysPx: 0 })
    ok((await page.locator('.log-line').count()) < 60)
    await page.getByRole('button', { name: 'Wrap', exact: true }).click()
    await page.setViewportSize({ width: 1280, height: 900 })
  })

  test('a line of megabytes is shown in part, and what is missing is stated', async () => {
    const run = await runIn('long', ['Succeeded'])
    await open(run)
    await whenRead(run)
    const line = page.locator('.log-line', { hasText: 'xxxxx' }).first()
    await line.getByText(/… 14,\d{3} more characters: wrap lines to read them$/).waitFor()
    await page.getByRole('button', { name: 'Wrap', exact: true }).click()
    await line.getByText('line cut at 16 KiB').waitFor()
    equal(await line.getByText('more characters').count(), 0)
    await page.locator('.log').evaluate(element => element.scrollTo({ top: element.scrollHeight }))
    await page.locator('.log-line', { hasText: 'after' }).waitFor()
    deepEqual(await layout(), { rowsTooMany: 0, belowPx: 0, sidewaysPx: 0 })
    await page.getByRole('button', { name: 'Wrap', exact: true }).click()
  })

  test('the attempts at the same work lead to each other', async () => {
    await runIn('broken', ['Failed'])
    const retry = await eventually(
      async () => (await runsOf('broken')).find(({ spec, status }) => spec.epoch === 2 && status?.finishedAt),
      'a retry',
      60_000,
    )
    await open(retry)
    const attempts = page.getByRole('navigation', { name: 'Attempts' })
    match((await attempts.locator('[aria-current="page"]').textContent()) ?? '', /^Attempt 2/)
    await attempts.getByRole('link', { name: 'Attempt 1' }).click()
    await page.waitForURL(/broken-[0-9a-f]+-1$/)
    await page.locator('.timeline-bar.bad').waitFor()
    await page.locator('.log').getByText('no luck').waitFor()
  })

  test('a Run links to its worker while that exists, and names it afterwards', async () => {
    const endFile = join(dataDir, 'end')
    await makeStack('short', ['sh', '-c', `until test -e ${endFile}; do sleep 0.1; done`])
    const run = await runIn('short', ['Applying'])
    const name = run.spec.workerName as string
    await open(run)
    const link = page.getByRole('link', { name, exact: true })
    await link.waitFor()
    writeFileSync(endFile, '')
    // A worker of the pool exits after its Run.
    await link.waitFor({ state: 'detached', timeout: 40_000 })
    await page.getByText(name, { exact: true }).waitFor()
  })

  test('all controllers of the process are listed, with the latency of those that reconcile', async () => {
    await runIn('many', ['Succeeded'])
    await page.goto(`${base()}/console/controllers`)
    for (const name of ['stack', 'dispatch', 'disruption', 'disruption-budgets', 'oarlock-stores'])
      await page.getByRole('cell', { name, exact: true }).waitFor()
    const stack = page.locator('tbody tr', { has: page.getByRole('cell', { name: 'stack', exact: true }) })
    // It is read again every 10 s.
    await stack
      .locator('td')
      .last()
      .getByText(/\d(ms|s)$/)
      .waitFor()
    await page.getByText('Other processes update theirs in their Lease').waitFor()
  })

  test('the pool of a Run has its own page, with its size over time', async () => {
    await open(await runIn('many', ['Succeeded']))
    await page.getByRole('link', { name: 'default', exact: true }).click()
    await page.waitForURL(/console\/pools\/default$/)
    await page.getByText(/^0 to \d+ workers, 1 Run at a time each$/).waitFor()
    // The second sample of the history is there after 20 s.
    await page.getByRole('img', { name: /^Workers, highest in 10s: desired \d+, registered \d+, busy \d+$/ }).waitFor({ timeout: 30_000 })
    deepEqual(await violationsOf(page), [])
    await page.getByRole('button', { name: 'Day' }).click()
    await page.waitForURL(/pools\/default\?period=day$/)
  })

  test('has no violation of accessibility rules and fits a phone, in both colours', async () => {
    await checkLooks(page, ['marked', 'broken'], async stack => {
      await open((await runsOf(stack))[0] as Run)
      await page.locator('.actions').waitFor()
    })
  })

  test('the dialog of a destruction stays when its Stack has disappeared, and states that', async () => {
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.goto(`${base()}/console/stacks/a/marked`)
    for (const [action, sentence] of [
      ['Run', 'Plans the current source and inputs and applies the changes to the real infrastructure'],
      ['Plan', 'the real infrastructure stays as it is'],
      ['Refresh the state', 'corrects the stored state and the outputs'],
      ['Suspend', 'No Run starts until the Stack is resumed'],
    ] as const) {
      await page.getByRole('button', { name: action, exact: true }).click()
      await page.getByRole('dialog').getByText(sentence).waitFor()
      await page.keyboard.press('Escape')
    }
    await page.getByRole('button', { name: 'Destroy', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Plan the destruction' }).click()
    await dialog.getByLabel(/Type marked to confirm/).fill('marked')
    await dialog.getByRole('button', { name: 'Destroy', exact: true }).click()
    await dialog.getByText('Stack a/marked is destroyed and deleted.').waitFor()
    deepEqual(await violationsOf(page), [])
    equal(await dialog.getByRole('link', { name: 'All Stacks' }).getAttribute('href'), '/console/stacks')
    await dialog.locator('footer').getByRole('button', { name: 'Close' }).click()
    await page.getByText('Stack a/marked is deleted').waitFor()
  })

  test('no script failed, and nothing violated the Content-Security-Policy', () => {
    deepEqual(problems, [])
  })
})
