import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const executablePath = '/usr/bin/chromium'

/** Why tests in a browser are skipped; false if they run. */
export const withoutChromium = existsSync(executablePath)
  ? false
  : `Chromium is missing: install Debian's package chromium (${executablePath})`

/** Chromium without its connections to other hosts. @param more arguments, such as `--host-resolver-rules`. */
export async function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  return await chromium.launch({ executablePath, headless: true, args: [...args, ...more] })
}
