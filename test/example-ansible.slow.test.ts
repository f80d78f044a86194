/** examples/ansible through the command line, with the real ansible-playbook, at level Process and in a sandbox. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { loadEngine } from '../src/execution/engine/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { condition } from './support/stacks.ts'

const detection = await (await loadEngine('ansible')).detect(process.env)
const skip = detection.found ? false : `needs ansible-playbook: ${detection.reasons.join(', ')}`
const sandboxSkip = skip || (existsSync('/usr/bin/bwrap') ? false : 'needs bubblewrap')
const root = join(import.meta.dirname, '..')

describe('examples/ansible', { skip }, () => {
  const oarlock = useOarlock()
  const { dataDir, stacks, succeeds } = oarlock
  const motd = join(dataDir, 'motd')
  const read = (name: string) => readFileSync(join(motd, name), 'utf8').trim()

  test('the example is planned, approved, applied, corrected after drift and destroyed', { timeout: 300_000 }, async () => {
    const file = join(dataDir, 'stack.yaml')
    const example = readFileSync(join(root, 'examples', 'ansible', 'stack.yaml'), 'utf8')
    writeFileSync(file, example.replace('directory: /tmp/motd', `directory: ${motd}`))
    await succeeds('apply', '-f', file)
    await stacks.until('motd', 'approval', stack => condition(stack, 'AwaitingApproval')?.status === 'True')
    equal(existsSync(motd), false)
    const approved = await succeeds('approve', 'motd', '--yes', '--wait')
    match(approved.text, /\+web1 is managed by Oarlock, contact \*\*\*/)
    const ready = await stacks.untilReady('motd')
    equal(read('web1'), 'web1 is managed by Oarlock, contact operations@example.com')
    deepEqual(ready.status?.outputs, { files: [join(motd, 'web1'), join(motd, 'web2')] })
    equal(ready.status?.resources, 2)

    match((await succeeds('plan', 'motd')).text, /no changes/i)
    writeFileSync(join(motd, 'web2'), 'changed\n')
    match((await succeeds('plan', 'motd')).text, /-changed/)
    equal(read('web2'), 'changed')

    await succeeds('destroy', 'motd', '--yes')
    await stacks.untilDeleted('motd')
    deepEqual(readdirSync(motd), [])
  })

  const playbook = (tasks: string) => `- hosts: all\n  gather_facts: false\n  tasks:\n${tasks.replaceAll(/^/gm, '    ')}\n`
  const spec = (tasks: string, more: Partial<StackSpec> = {}): StackSpec => ({
    engine: 'ansible',
    source: { inline: { files: { 'site.yml': playbook(tasks) } } },
    ansible: { playbooks: ['site.yml'], inventory: { hosts: { web1: { ansible_connection: 'local' } } } },
    ...more,
  })

  test('in a sandbox a playbook runs, and sees neither the home of the worker nor its files', {
    skip: sandboxSkip,
    timeout: 300_000,
  }, async () => {
    const tasks = `- ansible.builtin.stat: { path: "${oarlock.kubeconfig}" }
  register: found
- ansible.builtin.copy: { content: "x", dest: "{{ lookup('env', 'TMPDIR') }}/written" }
- ansible.builtin.set_stats: { data: { sees: "{{ found.stat.exists }}" } }`
    const stack = await stacks.create('boxed', spec(tasks, { isolation: { level: 'Sandbox', network: 'None' } }))
    ok(stack)
    const ready = await stacks.untilReady('boxed')
    deepEqual(ready.status?.outputs, { sees: false })
  })

  test('a failed task is in the message of the Run, with its host and reason', { timeout: 300_000 }, async () => {
    mkdirSync(motd, { recursive: true })
    const tasks = '- name: Break\n  ansible.builtin.fail: { msg: the disk is full }'
    await stacks.create('broken', spec(tasks, { retry: { limit: 0 }, ansible: { ...spec('').ansible!, check: false } }))
    const failed = await stacks.until('broken', 'failed', stack => condition(stack, 'Ready')?.reason === 'RetriesExhausted')
    match(condition(failed, 'Ready')?.message ?? '', /task "Break" failed on web1: the disk is full; web1: ok=0 changed=0 failed=1/)
  })
})
