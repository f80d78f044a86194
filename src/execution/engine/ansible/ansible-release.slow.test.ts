/** The engine with the release of ansible-core on PyPI that scripts/build-ansible.sh installs; ansible.test.ts runs with the one on PATH. */
import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { EngineContext } from '../engine.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { createAnsibleEngine } from './ansible.ts'

const cache = process.env.OARLOCK_ANSIBLE_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock/ansible')
const playbook = join(cache, 'current/bin/ansible-playbook')
const skip = existsSync(playbook) ? false : 'ansible-core of PyPI was not found: run scripts/build-ansible.sh'
const engine = createAnsibleEngine({ ...process.env, ANSIBLE_PLAYBOOK_BIN: playbook })
const env = { PATH: '/usr/local/bin:/usr/bin:/bin' }

test('ansible-core from PyPI: check, apply, outputs, drift, a failed task, and templates that stay text', {
  skip,
  timeout: 300_000,
}, async t => {
  const site = `- hosts: all
  gather_facts: false
  tasks:
    - name: Write the file
      ansible.builtin.copy: { content: "{{ [own, foreign] | to_json }}", dest: "{{ path }}", mode: "0600" }
    - ansible.builtin.set_stats: { data: { url: "file://{{ path }}" } }
    - name: Break
      ansible.builtin.fail: { msg: "disk is full" }
      when: broken | default(false)
`
  const ansible = { playbooks: ['site.yml'], inventory: { hosts: { web1: { ansible_connection: 'local' } } } }
  const harness = await createEngineHarness(t, { 'site.yml': site }, { spec: { engine: 'ansible', ansible }, env })
  const [path, executed] = [join(harness.root, 'written'), join(harness.root, 'executed')]
  const foreign = `{{ lookup('pipe', 'touch ${executed}') }}`
  const own = { own: '{{ "o" ~ "wn" }}', path }
  const next = (more: object = {}) => {
    const variables = { ...own, ...more }
    return harness.nextRun({ variables: { ...variables, foreign }, spec: { engine: 'ansible', ansible, variables } })
  }
  const run = async (context: EngineContext) => {
    await engine.prepare(context)
    return await engine.apply(context, await engine.plan(context))
  }
  match(JSON.stringify(await engine.detect({ ANSIBLE_PLAYBOOK_BIN: playbook })), /"found":true,"version":"2\.19\./)
  const first = await run(await next())
  deepEqual(JSON.parse(await readFile(path, 'utf8')), ['own', foreign])
  deepEqual([first.changed, first.outputs], [true, { url: { value: `file://${path}`, sensitive: false } }])
  equal((await run(await next())).changed, false)
  await writeFile(path, 'drift')
  const drifted = await next()
  await engine.prepare(drifted)
  equal((await engine.plan(drifted)).hasChanges, true)
  await rejects(run(await next({ broken: true })), /task "Break" failed on web1: disk is full/)
  equal(existsSync(executed), false)
})
