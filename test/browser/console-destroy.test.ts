/** How a Stack is destroyed in Chromium, on the console of a real all-in-one with Stacks of engine `command`. */
import { deepEqual, equal } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { annotations, runResource, type Stack, stackResource } from '../../src/api/index.ts'
import { namespaceResource } from '../../src/kubernetes/client/index.ts'
import { findCondition, isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { violationsOf } from '../support/axe.ts'
import { launchChromium, withoutChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from '../support/oarlock-process.ts'

const namespace = 'a'

describe('the dialog of a destruction', { skip: withoutChromium, timeout: 180_000 }, () => {
  const dataDir = makeDataDir()
  /** The destruction of Stack `canceled` waits until this file exists. */
  const goFile = join(dataDir, 'go')
  let app: OarlockProcess
  let browser: Browser
  let page: Page

  before(async () => {
    app = await startOarlock(dataDir)
    await app.client.resource(namespaceResource).create({ metadata: { name: namespace } })
    for (const [name, destroy] of [
      ['network', 'true'],
      ['replanned', 'true'],
      ['canceled', `test -e ${goFile} || sleep 100`],
    ] as const)
      await makeStack(name, { engine: 'command', command: { apply: ['true'], destroy: ['sh', '-c', destroy] }, source: inline })
    await makeStack('web', { engine: 'command', command: { apply: ['true'] }, source: inline, dependsOn: [{ name: 'network' }] })
    const git = { url: 'http://127.0.0.1:1/none.git', ref: 'main' }
    await makeStack('broken', { engine: 'command', command: { apply: ['true'] }, source: { git } })
    browser = await launchChromium()
    page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage()
    const headers = { authorization: `Bearer ${readFileSync(join(dataDir, 'console-token'), 'utf8').trim()}` }
    const links = await fetch(`${app.httpUrl}/console/api/links`, { method: 'POST', headers })
    await page.goto(`${app.httpUrl}/console/#token=${((await links.json()) as { link: string }).link}`)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
  after(async () => {
    await browser?.close()
    await app?.stop()
    removeDirectory(dataDir)
  })

  const inline = { inline: { files: { a: '1' } } }
  const stacks = () => app.client.resource(stackResource)
  const makeStack = (name: string, spec: Stack['spec']) => stacks().create({ metadata: { namespace, name }, spec })
  const untilStack = (name: string, what: string, accepts: (stack: Stack) => boolean) =>
    eventually(
      async () => {
        const stack = (await stacks().get(name, { namespace })) as Stack
        return accepts(stack) ? stack : undefined
      },
      `stack/${name}: ${what}`,
      60_000,
    )
  const untilReady = (name: string) => untilStack(name, 'Ready', ({ status }) => isConditionTrue(status?.conditions, 'Ready'))
  const reasonOf = ({ status }: Stack, type: string) => findCondition(status?.conditions, type)?.reason
  const openPage = async (name: string) => {
    await page.goto(`${app.httpUrl}/console/stacks/${namespace}/${name}`)
    await page.getByRole('button', { name: 'Destroy', exact: true }).waitFor()
  }
  const openDialog = async () => {
    await page.getByRole('button', { name: 'Destroy', exact: true }).click()
    return page.getByRole('dialog')
  }
  const confirmIn = async (dialog: Awaited<ReturnType<typeof openDialog>>, name: string) => {
    await dialog.getByLabel(`Type ${name} to confirm`).fill(name)
    await dialog.getByRole('button', { name: 'Destroy', exact: true }).click()
  }

  test('lists what would keep the destruction waiting, and offers no plan', async () => {
    await untilReady('web')
    await openPage('network')
    const dialog = await openDialog()
    await dialog.getByText('Stacks depend on it: web; destroy them first').waitFor()
    equal(await dialog.getByRole('button', { name: 'Plan the destruction' }).count(), 0)
    deepEqual(await violationsOf(page), [])
  })

  test('deletes a Stack that was never applied and whose source is broken, without a plan', async () => {
    await openPage('broken')
    const dialog = await openDialog()
    await dialog.getByText('there is nothing to destroy, and nothing to plan').waitFor()
    await dialog.getByText('Deletes the Stack; the real infrastructure stays as it is.').waitFor()
    await confirmIn(dialog, 'broken')
    await dialog.getByText('Stack a/broken is destroyed and deleted.').waitFor()
  })

  test('shows and confirms the plan that a deletion waits for, which cannot be approved', async () => {
    await untilReady('replanned')
    const confirmation = { [annotations.destroyPlan]: 'sha256:of-another-plan@2026-06-01T10:00:00Z' }
    await stacks().patch('replanned', { metadata: { annotations: confirmation } }, { type: 'merge', namespace })
    await stacks().delete('replanned', { namespace })
    await untilStack('replanned', 'another plan', stack => reasonOf(stack, 'AwaitingApproval') === 'ConfirmationRequired')
    await openPage('replanned')
    await page.getByText('the deletion of the Stack needs no approval, but the confirmation of the user who destroys it').waitFor()
    await page.getByRole('heading', { name: 'Plan that awaits the confirmation of the destruction' }).waitFor()
    const dialog = await openDialog()
    await dialog.getByText('The Stack is being deleted, and waits until a user confirms this plan').waitFor()
    deepEqual(await violationsOf(page), [])
    await confirmIn(dialog, 'replanned')
    await dialog.getByText('Stack a/replanned is destroyed and deleted.').waitFor()
  })

  test('plans a destruction again whose Run was canceled, and confirms that plan', async () => {
    await untilReady('canceled')
    await openPage('canceled')
    const first = await openDialog()
    await first.getByRole('button', { name: 'Plan the destruction' }).click()
    await confirmIn(first, 'canceled')
    await first.getByText('destruction of exactly this plan requested').waitFor()
    await first.getByRole('button', { name: 'Close' }).last().click()
    const runs = app.client.resource(runResource)
    const active = async () =>
      (await runs.list({ namespace })).items.find(({ spec, status }) => spec.type === 'Destroy' && status?.phase === 'Applying')
    const { metadata } = await eventually(active, 'the Destroy', 60_000)
    await runs.patch(metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace })
    await untilStack('canceled', 'RunCanceled', stack => reasonOf(stack, 'Stalled') === 'RunCanceled')

    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('dialog').getByText('this plans its destruction again, and nothing is destroyed before').waitFor()
    await page.keyboard.press('Escape')

    writeFileSync(goFile, '')
    const again = await openDialog()
    await again.getByRole('button', { name: 'Plan the destruction' }).click()
    await again.getByText('The Stack is being deleted, and waits until a user confirms this plan').waitFor()
    await confirmIn(again, 'canceled')
    await again.getByText('Stack a/canceled is destroyed and deleted.').waitFor()
  })
})
