import { deepEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const source = readFileSync(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8')

/** The violations of accessibility rules on a page, each with its elements. */
export async function violationsOf(page: Page): Promise<string[]> {
  // Not by a script of the page, which its policy forbids.
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Runtime.evaluate', { expression: source })
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { target: string[] }[] }[] }> }
    }
    return (await axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
  })
  await devtools.detach()
  return violations
}

const looks = (['light', 'dark'] as const).flatMap(colorScheme => [1280, 360].map(width => ({ colorScheme, width })))

/**
 * Shows each of these pages on a desk and on a phone, in light and dark colours: none violates a rule of accessibility or is wider than the screen.
 * @param open shows the page of this name, and waits until it is complete.
 * @param shown called with each that has passed, such as for a screenshot.
 */
export async function checkLooks(
  page: Page,
  names: readonly string[],
  open: (name: string) => Promise<unknown>,
  { height = 740, shown }: { readonly height?: number; readonly shown?: ((look: string) => Promise<unknown>) | undefined } = {},
): Promise<void> {
  for (const { colorScheme, width } of looks) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height })
    for (const name of names) {
      await open(name)
      const look = `${name} ${width} ${colorScheme}`
      deepEqual(await violationsOf(page), [], look)
      ok(await fits(page), `${look} is wider than the screen`)
      await shown?.(look)
    }
  }
}

async function fits(page: Page): Promise<boolean> {
  return await page.evaluate(() => {
    const { document, innerWidth } = globalThis as unknown as { document: { documentElement: { scrollWidth: number } }; innerWidth: number }
    return document.documentElement.scrollWidth <= innerWidth
  })
}
