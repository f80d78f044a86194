// Installs exactly the packages of package-lock.json when node_modules does not match it, and bundles the sources and builds the console's
// page when they have changed.
// Runs under any Node >= 20.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCheckoutConsole } from './build-console.mjs'
import { bundleCheckout } from './bundle.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const wanted = readFileSync(join(root, 'package-lock.json'), 'utf8')
const stamp = join(root, 'node_modules', '.oarlock-installed')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  console.log('oarlock: installing packages (once)…')
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const [command, argv] = npm ? [process.execPath, [npm, ...args]] : ['npm', args]
  const { status, error } = spawnSync(command, argv, { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    console.error(`oarlock: npm ci failed${error ? `: ${error.message}` : ` with exit code ${status}`}. Is the npm registry reachable?`)
    process.exit(1)
  }
  writeFileSync(stamp, wanted)
}

await Promise.all([bundleCheckout(root), buildCheckoutConsole(root)])
