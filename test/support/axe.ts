import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const source = readFileSync(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8')

/** The violations of accessibility rules on a page: the rule and its elements. */
export async function axeViolations(page: Page): Promise<string[]> {
  // Not by a script of the page, which its policy forbids.
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Runtime.evaluate', { expression: source })
  const run = `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`
  const { result } = await devtools.send('Runtime.evaluate', { expression: run, awaitPromise: true, returnByValue: true })
  await devtools.detach()
  return result.value as string[]
}
