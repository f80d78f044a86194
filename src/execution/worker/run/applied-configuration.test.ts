import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Run, StackSource } from '../../../api/index.ts'
import { RootDirectory } from '../../../kubernetes/util/root-directory.ts'
import { appliedSource, captureConfiguration, mergeInputs, readAppliedConfiguration } from './applied-configuration.ts'
import type { RunInputs } from './inputs.ts'
import { fetchRunSource } from './run-configuration.ts'

const inputs = (values: Partial<RunInputs>): RunInputs => ({
  ...{ variables: {}, sensitiveNames: [], env: {}, secretEnvNames: [], secrets: [], engineSecrets: {} },
  ...values,
})
const run = (source: StackSource, configuration?: 'Applied'): Run =>
  ({
    metadata: { name: 'app-2', namespace: 'shop' },
    spec: { stackRef: { name: 'app' }, revision: 'r2', stack: { source }, ...(configuration && { configuration }) },
  }) as unknown as Run

test('inputs are those that were applied, except for secret values that still exist', () => {
  const applied = inputs({
    variables: { region: 'north', password: 'old', token: 'kept' },
    sensitiveNames: ['password', 'token'],
    env: { MODE: 'applied', KEY: 'old-key', GONE: 'gone-key' },
    secretEnvNames: ['KEY', 'GONE'],
    kubeconfig: 'token: old-token',
    engineSecrets: { vault: 'old-vault', become: 'kept-become' },
  })
  const present = inputs({
    variables: { region: 'south', password: 'new', more: 'x' },
    sensitiveNames: ['password'],
    env: { MODE: 'present', KEY: 'new-key' },
    secretEnvNames: ['KEY'],
    secrets: ['new', 'new-key'],
    engineSecrets: { vault: 'new-vault' },
    gitSecret: { name: 'git', keys: ['password'], data: { password: 'p' } },
  })
  const merged = mergeInputs(applied, present)
  deepEqual(merged.variables, { region: 'north', password: 'new', token: 'kept' })
  deepEqual(merged.engineSecrets, { vault: 'new-vault', become: 'kept-become' })
  deepEqual(merged.env, { MODE: 'applied', KEY: 'new-key', GONE: 'gone-key' })
  deepEqual([merged.sensitiveNames, merged.secretEnvNames], [applied.sensitiveNames, applied.secretEnvNames])
  deepEqual([merged.kubeconfig, merged.gitSecret], ['token: old-token', present.gitSecret])
  // All of them are masked, also those that are not used any more (invariant 9).
  deepEqual([...merged.secrets].sort(), ['gone-key', 'kept', 'kept-become', 'new', 'new-key', 'old', 'old-key', 'old-token', 'old-vault'])
})

test('the repository is the applied one, with the credentials that are set now', () => {
  const git = { url: 'https://git.test/a', branch: 'main', directory: 'v1', secretRef: { name: 'old' } }
  const applied = { format: 1 as const, runName: 'app-1', source: { git }, revision: 'c1', inputs: inputs({}) }
  const present = run({ git: { url: git.url, directory: 'v2', secretRef: { name: 'new' } } })
  deepEqual(appliedSource(applied, present), { source: { git: { ...git, secretRef: { name: 'new' } } }, revision: 'c1' })
  deepEqual(appliedSource(applied, run({ git: { url: 'https://git.test/b' } })), { source: { git }, revision: 'c1' })
})

test('what is kept of a Run is read by one that destroys it, and a directory that cannot be read names the way out', async t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-applied-'))
  t.after(() => rmSync(root, { recursive: true }))
  const directory = { files: new RootDirectory(root), work: join(root, 'work') }
  mkdirSync(directory.work)
  writeFileSync(join(directory.work, 'main.tf'), 'x')
  const bytes = await captureConfiguration(run({ inline: { files: { 'main.tf': 'x' } } }), directory, inputs({ env: { A: 'b' } }))
  const state = { getConfiguration: async () => bytes }
  const { signal } = new AbortController()
  equal(await readAppliedConfiguration(run({ inline: { files: {} } }), state, signal), undefined)
  const applied = await readAppliedConfiguration(run({ inline: { files: {} } }, 'Applied'), state, signal)
  deepEqual(
    [applied?.runName, applied?.revision, applied?.source, applied?.inputs.env, applied?.files?.map(({ path }) => path)],
    ['app-2', 'r2', { inline: { files: {} } }, { A: 'b' }, ['main.tf']],
  )
  const newer = { getConfiguration: async () => Buffer.from('{"format":2}') }
  equal(await readAppliedConfiguration(run({}, 'Applied'), newer, signal), undefined)

  const gone = run({ path: { path: join(root, 'gone') } }, 'Applied')
  const options = { allowPaths: [root], signal, cacheDir: join(root, 'cache') }
  await rejects(fetchRunSource(gone, { ...directory, work: join(root, 'other') }, { inputs: inputs({}), applied: undefined }, options), {
    name: 'AppliedSourceError',
    reason: 'AppliedSourceUnavailable',
    message: /^the source that was applied last cannot be read: .* oarlock destroy app -n shop --use-current-source$/,
  })
})
