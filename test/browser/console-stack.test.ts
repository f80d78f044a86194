/** The page of a Stack in Chromium, of a real all-in-one whose Stacks real engines have applied. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, BrowserContext, Dialog, Locator, Page } from 'playwright-core'
import type { StackSpec } from '../../src/api/index.ts'
import { stackSections } from '../../src/console/protocol/index.ts'
import { checkLooks } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { skipWithoutTerraformEngine } from '../support/run-program.ts'

// Not by its name: the types of the server's modules and those of browsers do not fit together.
const { startConsoleFleet } = (await import(join(import.meta.dirname, '../support/console-fleet.ts'))) as {
  startConsoleFleet(): Promise<Fleet>
}
type Fleet = {
  readonly url: string
  readonly firstRun: string
  consoleLink(): string
  specOf(name: string): Promise<StackSpec>
  stop(): Promise<void>
}

describe('the page of a Stack in a browser', { timeout: 240_000, skip: withoutChromium || skipWithoutTerraformEngine }, () => {
  let fleet: Fleet
  let browser: Browser
  let context: BrowserContext
  let page: Page
  const problems: string[] = []

  before(async () => {
    fleet = await startConsoleFleet()
    browser = await launchChromium()
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } })
    page = await context.newPage()
    page.setDefaultTimeout(20_000)
    page.on('pageerror', error => problems.push(error.stack ?? error.message))
    page.on('console', entry => {
      if (/Content Security Policy/.test(entry.text())) problems.push(entry.text())
    })
    await page.goto(fleet.consoleLink())
    await page.getByText('Needs attention').waitFor()
  })
  after(async () => {
    await browser?.close()
    await fleet?.stop()
  })

  const addressOf = (name: string, section = '') => `${fleet.url}stacks/shop/${name}${section && `/${section}`}`
  const open = async (name: string, section = '') => {
    await page.goto(addressOf(name, section))
    await page.getByRole('navigation', { name: 'Parts of the Stack' }).waitFor()
  }
  const panel = (heading: string) => page.locator('section.panel', { has: page.getByRole('heading', { name: heading }) })

  test('each part has an address, and the browser goes back to the one before', async () => {
    await open('network')
    await page.getByRole('link', { name: 'Resources' }).click()
    await page.waitForURL(addressOf('network', 'resources'))
    await page.getByText('terraform_data.subnet[0]').waitFor()
    equal(await page.getByRole('link', { name: 'Resources' }).getAttribute('aria-current'), 'page')
    await page.goBack()
    await page.waitForURL(addressOf('network'))
    await page.getByText('The current source and inputs are applied.').waitFor()
    await open('network', 'no-such-part')
    await page.getByText('The page of a Stack has no part no-such-part').waitFor()
  })

  test('a resource is opened by a key, with what is sensitive hidden, and closed again', async () => {
    const requests: string[] = []
    const record = (request: { url(): string }) => void requests.push(request.url())
    page.on('request', record)
    await open('app', 'resources')
    const row = page.getByRole('button', { name: 'terraform_data.release' })
    await row.waitFor()
    equal(await row.getAttribute('aria-expanded'), 'false')
    ok(!requests.some(url => url.includes('/resource?')))
    await row.focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(addressOf('app', 'resources?resource=terraform_data.release'))
    const shown = page.locator('.resource')
    await shown.getByText('provider["terraform.io/builtin/terraform"]').waitFor()
    equal(await row.getAttribute('aria-expanded'), 'true')
    const input = shown.locator('li', { has: page.getByText('input', { exact: true }) })
    const whole = input.getByRole('button', { name: /^Show all [\d,]+ characters of input$/ })
    ok(!((await input.textContent()) ?? '').includes('ahoy '.repeat(200)))
    await whole.focus()
    await page.keyboard.press('Space')
    await input.getByText('ahoy '.repeat(200).trim()).waitFor()
    match((await input.textContent()) ?? '', /"token": \(sensitive\)/)
    ok(!(await page.content()).includes('very-secret-token'))
    await row.focus()
    await page.keyboard.press('Space')
    await shown.waitFor({ state: 'detached' })
    await page.waitForURL(addressOf('app', 'resources'))
    page.off('request', record)
  })

  test('the link of a resource opens it and moves there, and states when the version does not have it', async () => {
    await page.setViewportSize({ width: 360, height: 500 })
    await open('network', `resources?resource=${encodeURIComponent('terraform_data.subnet[1]')}`)
    const row = page.getByRole('button', { name: 'terraform_data.subnet[1]' })
    await page.locator('.resource').getByText('"10.0.1.0/24"').or(page.locator('.resource').getByText('10.0.1.0/24')).first().waitFor()
    ok(await row.evaluate(element => element === document.activeElement))
    const { y = 0, height = 0 } = (await row.boundingBox()) ?? {}
    const navigation = (await page.getByRole('navigation', { name: 'Main pages' }).boundingBox())?.y ?? 0
    ok(y >= 0 && y + height < navigation, `${y} px to ${y + height} px of ${navigation} px`)
    await open('network', 'resources?resource=terraform_data.none')
    await page.getByText(/^version \d+ of the state of stack\/shop\/network has no resource "terraform_data\.none"$/).waitFor()
    await page.setViewportSize({ width: 1280, height: 860 })
    await open('web', 'resources')
    await page.getByRole('button', { name: 'ConfigMap shop/web-settings' }).click()
    await page.getByText('kubectl get ConfigMap web-settings -n shop -o yaml').waitFor()
  })

  test('the plan that awaits approval is shown by its resources, each of which closes', async () => {
    await open('database')
    const plan = panel('Plan that awaits approval')
    const volume = plan.locator('details', { hasText: 'terraform_data.volume will be created' })
    await volume.getByText('+ input').waitFor()
    await volume.locator('summary').click()
    await volume.getByText('+ input').waitFor({ state: 'hidden' })
    match((await plan.textContent()) ?? '', /Plan: 2 to add, 0 to change, 0 to destroy/)
  })

  /** Scrolls the plan to the end of its longest line. */
  const longestLine = (plan: Locator) =>
    plan.evaluate(async element => {
      const lines = [...element.querySelectorAll('pre > span')]
      const longest = lines.reduce((a, b) => ((b.textContent ?? '').length > (a.textContent ?? '').length ? b : a))
      const text = longest.firstChild as Text
      longest.scrollIntoView({ block: 'center' })
      element.scrollLeft = element.scrollWidth
      await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      const last = document.createRange()
      const end = text.data.trimEnd().length
      last.setStart(text, end - 1)
      last.setEnd(text, end)
      const { x, y, width, height } = last.getBoundingClientRect()
      return {
        characters: end,
        endIsSeen: document.elementFromPoint(x + width / 2, y + height / 2) === longest,
        isSideways: element.scrollWidth > element.clientWidth,
      }
    })

  test('every line of a plan is readable to its end, on a desk and on a phone, in its dialogs too', async () => {
    const widths = [
      { width: 1280, isWrapped: false },
      { width: 360, isWrapped: true },
    ]
    for (const { width, isWrapped } of widths) {
      await page.setViewportSize({ width, height: 860 })
      await open('database')
      for (const action of [undefined, 'Approve the plan', 'Reject the plan']) {
        if (action !== undefined) await page.getByRole('button', { name: action, exact: true }).click()
        const scope = action === undefined ? panel('Plan that awaits approval') : page.getByRole('dialog')
        const plan = scope.getByRole('region', { name: 'Text of the plan' })
        await plan.getByText('terraform_data.volume will be created').waitFor()
        for (const wraps of [isWrapped, !isWrapped, isWrapped]) {
          const what = `${width} px, ${action ?? 'the page'}, ${wraps ? 'wrapped' : 'not wrapped'}`
          const button = scope.getByRole('button', { name: 'Wrap the lines of the plan' })
          if ((await button.getAttribute('aria-pressed')) !== String(wraps)) await button.click()
          const { characters, ...found } = await longestLine(plan)
          ok(characters > 300, `${characters} characters`)
          deepEqual(found, { endIsSeen: true, isSideways: !wraps }, what)
        }
        if (action !== undefined) await page.keyboard.press('Escape')
      }
      await page.evaluate(() => localStorage.removeItem('oarlock.plan.wrap'))
    }
    await page.setViewportSize({ width: 1280, height: 860 })
  })

  test('a sensitive output is shown when it is asked for, and hidden again', async () => {
    await open('network', 'outputs')
    const outputs = panel('Outputs')
    await outputs.getByText('10.0.0.0/16').waitFor()
    ok(!(await page.content()).includes('very-secret-token'))
    await outputs.getByRole('button', { name: 'Show token' }).click()
    await outputs.getByText('very-secret-token').waitFor()
    await outputs.getByRole('button', { name: 'Hide token' }).click()
    await outputs.getByText('very-secret-token').waitFor({ state: 'detached' })
  })

  test('variables name their sources, and lead to the Stack whose outputs they are', async () => {
    await open('app', 'variables')
    const variables = panel('Variables')
    await variables.getByText('Keys of Secret app-credentials').waitFor()
    ok(!(await page.content()).includes('correct-horse'))
    await variables.getByRole('link', { name: 'network' }).first().click()
    await page.waitForURL(addressOf('network', 'outputs'))
  })

  test('two versions of the state are compared at an address, and values are shown when they are asked for', async () => {
    await open('network', 'state')
    await page
      .getByRole('button', { name: /^Changes of version/ })
      .first()
      .click()
    await page.waitForURL(/\?to=\d+$/)
    const difference = page.getByRole('heading', { name: 'Difference' }).locator('..')
    // A Run stores a version after each resource: the last one of the first Run is complete.
    const ofFirstRun = page.locator('.rows.versions li', { hasText: `${fleet.firstRun} ` }).first()
    await difference.getByLabel('From').selectOption(await ofFirstRun.locator('strong').textContent())
    await page.waitForURL(/\?from=\d+&to=\d+$/)
    await difference.getByText('input.value.marker').waitFor()
    ok(!((await difference.textContent()) ?? '').includes('"one"'))
    await difference.getByText('Show values').click()
    const marker = difference.locator('li', { hasText: 'input.value.marker' }).last()
    await marker.getByText('one').waitFor()
    await marker.getByText('two').waitFor()
  })

  test('a phone shows the comparison that is chosen', async () => {
    await page.setViewportSize({ width: 360, height: 500 })
    await open('network', 'state')
    await page
      .getByRole('button', { name: /^Changes of version/ })
      .first()
      .click()
    await page.getByText(/^Version \d+ to version \d+\. /).waitFor()
    const heading = page.getByRole('heading', { name: 'Difference' })
    ok(await heading.evaluate(element => element === document.activeElement))
    const { y = 0, height = 0 } = (await heading.boundingBox()) ?? {}
    const navigation = (await page.getByRole('navigation', { name: 'Main pages' }).boundingBox())?.y ?? 0
    ok(y > 0 && y + height < navigation, `${y} px to ${y + height} px of ${navigation} px`)
    await page.setViewportSize({ width: 1280, height: 860 })
  })

  test('a comparison ends when its part of the page is left', async () => {
    await page.route('**/stacks/shop/network/diff?*', () => undefined)
    const started = page.waitForRequest(/\/network\/diff\?/)
    await page.goto(addressOf('network', 'state?to=2'))
    const request = await started
    const failed = page.waitForEvent('requestfailed', each => each === request)
    await page.getByRole('link', { name: 'Resources' }).click()
    equal((await failed).failure()?.errorText, 'net::ERR_ABORTED')
    await page.unroute('**/stacks/shop/network/diff?*')
  })

  test('a rollback shows what changes, asks for the name, and makes the older version the current one', async () => {
    await open('network', 'state')
    await page
      .getByRole('button', { name: /^Roll back to version/ })
      .first()
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('oarlock state rollback network').waitFor()
    await dialog.getByText(/unchanged/).waitFor()
    const confirm = dialog.getByRole('button', { name: 'Roll back', exact: true })
    ok(await confirm.isDisabled())
    await dialog.getByLabel(/Type network to confirm/).fill('network')
    await confirm.click()
    await dialog.getByText(/is the current state, stored as version/).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByText('user oarlock:admin').waitFor()
  })

  test('the graph and the list show what the Stack needs, and lead there', async () => {
    await open('app', 'dependencies')
    await page.locator('.graph .node.current', { hasText: 'app' }).waitFor()
    equal(await page.locator('.graph .edge').count(), 2)
    await page.locator('.graph .node', { hasText: 'network' }).click()
    await page.waitForURL(addressOf('network', 'dependencies'))
    await page.locator('.rows.dependencies').getByText('needed by').first().waitFor()
  })

  test('drift is shown with what differs', async () => {
    await open('web', 'drift')
    await panel('What differs').getByText('data.theme: "light" → "dark"').waitFor()
  })

  test('the dialog of a requested plan leads to its Run, which shows the plan, as that of an Apply does', async () => {
    await open('web')
    await page.getByRole('button', { name: 'Plan', exact: true }).click()
    const dialog = page.getByRole('dialog')
    const release = Promise.withResolvers<void>()
    await page.route('**/console/api/actions', async route => {
      await release.promise
      await route.continue()
    })
    await dialog.locator('button[type=submit]').click()
    const running = dialog.getByRole('button', { name: 'Requesting…' })
    ok(await running.isDisabled())
    const colors = () => running.evaluate(element => [getComputedStyle(element).color, getComputedStyle(element).backgroundColor])
    await running.hover({ force: true })
    const hovered = await colors()
    await page.mouse.move(0, 0)
    deepEqual(hovered, await colors())
    release.resolve()
    await dialog.getByText('stack/web: plan requested').waitFor()
    await dialog.getByRole('link', { name: /^web-[0-9a-f]+-3$/ }).click()
    await page.waitForURL(/\/runs\/shop\/web-[0-9a-f]+-3$/)
    await page.unroute('**/console/api/actions')
    const plan = page.getByRole('region', { name: 'Text of the plan' })
    // A worker starts first.
    await plan.getByText('data.theme: "light" → "dark"').waitFor({ timeout: 60_000 })
    await page.goto(`${fleet.url}runs/shop/${fleet.firstRun}`)
    await plan.getByText('terraform_data.subnet[0] will be created').waitFor()
  })

  test('edited YAML outlives another page, a reload and the end of the session, and is discarded only after a question', async () => {
    const questions: string[] = []
    let isConfirmed = true
    const answer = (dialog: Dialog) => {
      questions.push(dialog.type() === 'beforeunload' ? 'beforeunload' : dialog.message())
      void (isConfirmed ? dialog.accept() : dialog.dismiss())
    }
    page.on('dialog', answer)
    await open('app', 'yaml')
    const editor = page.getByRole('textbox', { name: /^YAML of/ })
    const yaml = await editor.inputValue()
    const edited = yaml.replace('replicas: 2', 'replicas: 3')
    const isKept = async () => {
      await page.getByText('These are your changes from before. They are not applied.').waitFor()
      equal(await editor.inputValue(), edited)
    }
    await editor.fill(edited)
    await page.getByRole('link', { name: 'Events' }).click()
    await panel('Events').waitFor()
    await page.goBack()
    await isKept()
    await page.reload()
    await isKept()
    deepEqual(questions, ['beforeunload'])

    await context.clearCookies()
    await page.getByRole('button', { name: 'Validate' }).click()
    await page.getByText('the session has ended').waitFor()
    await page.goto(fleet.consoleLink())
    await page.getByText('Needs attention').waitFor()
    await open('app', 'yaml')
    await isKept()

    questions.length = 0
    isConfirmed = false
    await page.getByRole('button', { name: 'Load again' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    equal(await editor.inputValue(), edited)
    isConfirmed = true
    await page.getByRole('button', { name: 'Load again' }).click()
    await page.getByText('This is the Stack as it is now.').waitFor()
    equal(await editor.inputValue(), yaml)
    const [reload, signOut] = [/^Discard your changes to the YAML of shop\/app\?$/, /^Sign out and discard/]
    equal(questions.length, 3)
    for (const [index, question] of [reload, signOut, reload].entries()) match(questions[index] ?? '', question)
    await page.reload()
    await editor.waitFor()
    equal(await editor.inputValue(), yaml)
    equal(questions.length, 3)
    page.off('dialog', answer)
  })

  test('YAML: an error of the server is at its line, and what it accepts is shown and then applied', async () => {
    await open('app', 'yaml')
    const editor = page.getByRole('textbox', { name: /^YAML of/ })
    const yaml = await editor.inputValue()
    await editor.fill(yaml.replace('replicas: 2', 'replicas: 4').replace(/engine: \w+/, 'engine: cobol'))
    const apply = page.getByRole('button', { name: 'Apply', exact: true })
    ok(await apply.isDisabled())
    await page.getByRole('button', { name: 'Validate' }).click()
    await page.getByRole('alert').getByText('spec.engine').waitFor()
    await page
      .getByRole('alert')
      .getByRole('button', { name: /^Line / })
      .click()
    const selected = await editor.evaluate(element => {
      const { value, selectionStart, selectionEnd } = element as HTMLTextAreaElement
      return value.slice(selectionStart, selectionEnd)
    })
    equal(selected.trim(), 'engine: cobol')
    await editor.fill(yaml.replace('replicas: 2', 'replicas: 4'))
    await page.getByRole('button', { name: 'Validate' }).click()
    await page.getByText('This would change:').waitFor()
    await page.getByRole('region', { name: 'Changes' }).getByText('replicas: 4').waitFor()
    await apply.click()
    await page.getByText('Applied.', { exact: true }).waitFor()
    equal((await fleet.specOf('app')).variables?.replicas, 4)
  })

  test('Events of the Stack are listed', async () => {
    await open('network', 'events')
    await panel('Events').getByText('Run created').first().waitFor()
    await panel('Events').getByText('report no Event when they are created or succeed').waitFor()
  })

  test('parts have no violation of accessibility rules and fit a phone, in both colours', async () => {
    const shown = [
      'database',
      'network/state?to=2',
      'app/resources?resource=terraform_data.release',
      ...stackSections.slice(1).map(section => `${section === 'drift' ? 'web' : 'app'}/${section}`),
    ]
    const opened = async (look: string) => {
      const [name = '', section = ''] = look.split('/')
      await open(name, section)
      await page.locator('.object-page .panel').first().waitFor()
      await page.locator('.loading').first().waitFor({ state: 'detached' })
    }
    await checkLooks(page, shown, opened, { height: 860 })
  })

  test('a plan is rejected with a reason where it is shown', async () => {
    await page.setViewportSize({ width: 360, height: 860 })
    await open('database')
    await page.getByRole('button', { name: 'Reject the plan' }).click()
    const dialog = page.getByRole('dialog')
    const confirm = dialog.getByRole('button', { name: 'Reject the plan' })
    await dialog.getByText('terraform_data.volume will be created').waitFor()
    await dialog.getByLabel(/^Reason/).fill('too large')
    await confirm.click()
    await dialog.getByText(/plan [0-9a-f]{12} rejected/).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page
      .getByText(/was rejected by user "oarlock:admin": too large/)
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Reject the plan' }).waitFor({ state: 'detached' })
  })

  test('no script failed, and nothing violated the Content-Security-Policy', () => {
    deepEqual(problems, [])
  })
})
