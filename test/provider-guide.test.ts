/** Runs the program of docs/managed.md as its reader does, with the package's entry points mapped to src/. */
import { equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { describeResource, findCondition } from '../src/kubernetes/object/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

type Page = { spec: { forProvider: { title: string } }; status?: { conditions?: never[]; atProvider?: { bytes?: number } } }
const pageResource = describeResource<Page>({ group: 'web.example', version: 'v1', kind: 'Page', plural: 'pages', scope: 'Namespaced' })

const sources: Record<string, string> = {
  'oarlock/client': 'kubernetes/client',
  'oarlock/controller': 'kubernetes/controller',
  'oarlock/kubernetes': 'kubernetes',
  'oarlock/managed': 'controllers/managed',
}

test('the provider of the guide creates, corrects and deletes a page', async () => {
  const program = /^```ts\n([\s\S]*?)^```/m
    .exec(readFileSync('docs/managed.md', 'utf8'))?.[1]
    ?.replace(/'(oarlock\/\w+)'/g, (_, entry: string) =>
      JSON.stringify(join(import.meta.dirname, '..', 'src', sources[entry] as string, 'index.ts')),
    )
  await using api = await startTestServer()
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-guide-'))
  writeFileSync(join(directory, 'provider.ts'), String(program).replace('pollIntervalMs: 10_000', 'pollIntervalMs: 200'))
  const page = join(directory, 'public', 'default.index.html')
  const provider = spawn(process.execPath, ['provider.ts', 'public', api.kubeconfigPath], { cwd: directory, stdio: 'inherit' })
  const exited = once(provider, 'exit')
  try {
    const pages = api.client.resource(pageResource)
    await eventually(async () => {
      try {
        await pages.create({ metadata: { name: 'index', namespace: 'default' }, spec: { forProvider: { title: 'Hello' } } })
        return true
      } catch {
        return false
      }
    }, 'the kind to be served')
    const ready = async () =>
      findCondition((await pages.get('index', { namespace: 'default' })).status?.conditions, 'Ready')?.status === 'True'
    await eventually(ready, 'the page to be ready')
    match(readFileSync(page, 'utf8'), /<h1>Hello<\/h1>/)
    writeFileSync(page, 'changed by hand')
    await eventually(() => readFileSync(page, 'utf8') === '<h1>Hello</h1>\n\n', 'the file to be corrected')
    await pages.delete('index', { namespace: 'default' })
    await eventually(async () => (await pages.getOrUndefined('index', { namespace: 'default' })) === undefined, 'the page to be gone')
    equal(existsSync(page), false)
    provider.kill('SIGTERM')
    equal((await exited)[0], 0)
  } finally {
    provider.kill('SIGKILL')
    await exited
    rmSync(directory, { recursive: true, force: true })
  }
})
