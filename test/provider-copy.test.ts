/** `examples/copy-provider.ts`: each example runs outside of the checkout, with the published entry points only. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const root = join(import.meta.dirname, '..')
const directory = mkdtempSync(join(tmpdir(), 'oarlock-copy-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  name: string
  version: string
  exports: Record<string, { default: string } | string>
}
/** `oarlock` as it would be installed, with the source instead of what is built from it. */
const installed = join(directory, 'node_modules', 'oarlock')
mkdirSync(installed, { recursive: true })
symlinkSync(join(root, 'src'), join(installed, 'src'))
const sourceOf = (entry: { default: string } | string) =>
  typeof entry === 'string' ? entry : entry.default.replace('/dist/', '/src/').replace(/\.js$/, '.ts')
const exports = Object.fromEntries(Object.entries(manifest.exports).map(([path, entry]) => [path, sourceOf(entry)]))
writeFileSync(join(installed, 'package.json'), JSON.stringify({ ...{ name: 'oarlock', type: 'module' }, exports }))

const run = (args: readonly string[], cwd: string) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8', timeout: 60_000 })
  return { status, stdout, stderr }
}

for (const name of readdirSync(join(root, 'examples', 'providers'))) {
  test(`a copy of ${name} starts, and names arguments that are wrong`, () => {
    const copy = join(directory, name)
    const copied = run([join(root, 'examples', 'copy-provider.ts'), name, copy], directory)
    equal(copied.status, 0, copied.stderr)
    const { dependencies } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
    equal(dependencies.oarlock, `^${manifest.version}`)
    for (const dependency of Object.keys(dependencies).filter(each => each !== 'oarlock')) link(dependency)
    const help = run(['provider.ts', '--help'], copy)
    deepEqual([help.status, help.stderr], [0, ''])
    match(help.stdout, new RegExp(`^Usage: provider-${name} .*--install-kinds`))
    for (const [args, message] of [
      [['--shards', 'two'], /^provider-\w+: --shards must be an integer from 1 to 1024, got "two"; see --help\n$/],
      [['--shards', '0'], /--shards must be an integer from 1 to 1024, got "0"/],
      [['--port', '99999'], /--port must be an integer from 0 to 65535, got "99999"/],
      [['--chards', '2'], /Unknown option '--chards'/],
      [['a', 'b'], /expected one KUBECONFIG, got a b/],
    ] as const) {
      const wrong = run(['provider.ts', ...args], copy)
      equal(wrong.status, 2)
      match(wrong.stderr, message)
    }
    const lost = run(['provider.ts', '/nowhere/kubeconfig'], copy)
    deepEqual([lost.status, lost.stderr.split('\n').length], [1, 2], lost.stderr)
    match(lost.stderr, /^provider-\w+: .*\/nowhere\/kubeconfig/)
    equal(run([join(root, 'examples', 'copy-provider.ts'), name, copy], directory).status, 1)
  })
}

/** With everything that it requires. */
function link(dependency: string): void {
  const target = join(directory, 'node_modules', dependency)
  const source = join(root, 'node_modules', dependency)
  cpSync(source, target, { recursive: true })
  const { dependencies = {} } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as { dependencies?: Record<string, string> }
  for (const each of Object.keys(dependencies)) if (!readdirSync(join(directory, 'node_modules')).includes(each)) link(each)
}
