/** What a refresh reports that changes only the state, with the real CLI of `PULUMI_BIN` and the packages of `OARLOCK_PULUMI_NODE_MODULES`. */
import { deepEqual, equal } from 'node:assert/strict'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { EngineContext } from '../engine.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { createPulumiEngine } from './pulumi.ts'
import { StateInMemory } from './state-in-memory.ts'

const { PULUMI_BIN: pulumi, OARLOCK_PULUMI_NODE_MODULES: nodeModules } = process.env
const skip = pulumi === undefined ? 'PULUMI_BIN is not set' : nodeModules === undefined && 'OARLOCK_PULUMI_NODE_MODULES is not set'

/** A resource with a status that is no input, and that is read from a file. */
const program = `
const pulumi = require('@pulumi/pulumi')
const statusIn = ({ file }) => require('fs').readFileSync(file, 'utf8')
const provider = {
  async create(inputs) { return { id: 'thing', outs: { ...inputs, status: statusIn(inputs) } } },
  async read(id, props) { return { id, props: { ...props, status: statusIn(props) } } },
  async diff() { return { changes: false } },
  async delete() {},
}
class Thing extends pulumi.dynamic.Resource {
  constructor(name, inputs) { super(provider, name, { status: undefined, ...inputs }) }
}
new Thing('thing', { file: process.env.STATUS_FILE })
`

test('what a refresh changes only in the state is planned, stored and reported, and nothing without such a change', {
  skip,
  timeout: 600_000,
}, async t => {
  const keys = { encrypt: async (values: readonly Uint8Array[]) => values, decrypt: async (values: readonly Uint8Array[]) => values }
  const state = new StateInMemory(keys as never, { version: 3, deployment: null }, 1)
  const files = {
    'Pulumi.yaml': 'name: web\nruntime: { name: nodejs, options: { typescript: false } }\n',
    'package.json': '{"name":"web","main":"index.js"}',
    'index.js': program,
  }
  const { nextRun, root } = await createEngineHarness(t, files)
  const status = join(root, 'status')
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', STATUS_FILE: status }
  const stored = () => state.state.deployment?.resources?.find(({ urn }) => urn.endsWith('::thing'))?.outputs as { status: string }
  const run = async (settings: { refresh: boolean }, options: { refreshOnly?: boolean } = {}, more: Partial<EngineContext> = {}) => {
    const context = await nextRun({ pulumiState: state, env, spec: { engine: 'pulumi', pulumi: settings }, ...more })
    const engine = createPulumiEngine()
    await engine.prepare(context)
    // What is in the source is replaced by what the packages of the Run are.
    symlinkSync(nodeModules ?? '', join(context.directory, 'node_modules'))
    const plan = await engine.plan(context, options)
    const { changed } = await engine.apply(context, plan)
    return { changed, counts: [plan.add, plan.change, plan.destroy], summary: plan.summary, status: stored().status }
  }
  writeFileSync(status, 'one')
  equal((await run({ refresh: false })).status, 'one')

  writeFileSync(status, 'two')
  deepEqual(await run({ refresh: false }), { changed: false, counts: [0, 0, 0], summary: [], status: 'one' })
  const summary = ['~ pulumi-nodejs:dynamic:Resource thing: only its state or outputs']
  deepEqual(await run({ refresh: true }), { changed: true, counts: [0, 0, 0], summary, status: 'two' })
  deepEqual(await run({ refresh: true }), { changed: false, counts: [0, 0, 0], summary: [], status: 'two' })

  writeFileSync(status, 'three')
  deepEqual(await run({ refresh: false }, { refreshOnly: true }), { changed: true, counts: [0, 1, 0], summary, status: 'three' })
  deepEqual(await run({ refresh: false }, { refreshOnly: true }), { changed: false, counts: [0, 0, 0], summary: [], status: 'three' })
})
