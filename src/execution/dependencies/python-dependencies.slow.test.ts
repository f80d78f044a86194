import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { skip as noSandbox } from '../workspace/isolation/isolated-run.testing.ts'
import { createStore, startRun } from './install.testing.ts'
import { installDependencies } from './install-dependencies.ts'

const temporary = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
after(() => rmSync(temporary, { recursive: true }))
const noPython =
  existsSync('/usr/bin/python3') &&
  execFileSync('/usr/bin/python3', ['-c', 'import importlib.util as u; print(u.find_spec("ensurepip") is not None)'], {
    encoding: 'utf8',
  }).trim() === 'True'
    ? false
    : 'needs python3 with venv in /usr/bin'

const wheel = (): Buffer => {
  const path = join(temporary, 'tool-1.0-py3-none-any.whl')
  const script = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tool.py', 'def main(): print("tool works")')
    wheel.writestr('tool-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tool\\nVersion: 1.0\\n')
    wheel.writestr('tool-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tool-1.0.dist-info/entry_points.txt', '[console_scripts]\\ntool = tool:main\\n')
    wheel.writestr('tool-1.0.dist-info/RECORD', '')`
  execFileSync('/usr/bin/python3', ['-c', script, path])
  return readFileSync(path)
}

test('a virtual environment of pip works in Runs with other paths, also its scripts', { skip: noPython || noSandbox }, async t => {
  const store = createStore()
  const files = { 'app/requirements.txt': './wheels/tool-1.0-py3-none-any.whl\n', 'app/wheels/tool-1.0-py3-none-any.whl': wheel() }
  const digests: string[] = []
  for (const how of ['Installed', 'Cached']) {
    const { context, directory, run } = await startRun(t, { level: 'Sandbox', network: 'None', store, files })
    const result = await installDependencies(context, { directory: join(directory.work, 'app'), virtualEnvironment: 'venv' })
    equal(result?.source, how)
    digests.push(result.digest)
    const { lines } = await run(
      'cd app && venv/bin/tool && venv/bin/python -c "import tool, sys; print(sys.prefix)"; (echo x > venv/x) 2>/dev/null || echo read-only',
      undefined,
      { PATH: '/usr/bin:/bin' },
    )
    deepEqual([lines[0], lines[1], lines.at(-1)], ['tool works', join(directory.work, 'app/venv'), 'read-only'], lines.join('\n'))
  }
  equal(digests[0], digests[1])
  const { context, directory } = await startRun(t, { level: 'Sandbox', network: 'None', store, files })
  const other = await installDependencies(context, { directory: join(directory.work, 'app') })
  notEqual(other?.digest, digests[0], 'the place of the environment is an input')
})
