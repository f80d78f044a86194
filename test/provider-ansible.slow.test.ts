/** The provider of examples/providers/ansible in this process, the controllers and their workers as processes, with the real ansible-playbook. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { ansibleRunOptions } from '../examples/providers/ansible/ansible-run.ts'
import { type AnsibleRunBody, ansibleRunResource, kinds } from '../examples/providers/ansible/kinds.ts'
import { annotations, managed } from '../src/controllers/managed/index.ts'
import { loadEngine } from '../src/execution/engine/index.ts'
import { installKinds, secretResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { findCondition, type KubeObject } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { ManagedObjects } from './support/managed/managed-objects.ts'
import { useOarlock } from './support/oarlock-fixture.ts'

const detection = await (await loadEngine('ansible')).detect(process.env)
const skip = detection.found ? false : `needs ansible-playbook: ${detection.reasons.join(', ')}`
const namespace = 'default'

describe('the provider for Ansible', { skip }, () => {
  const oarlock = useOarlock()
  let runs: ManagedObjects<AnsibleRunBody>
  let manager: Manager

  const startProvider = async () => {
    manager = new Manager({ client: oarlock.client, log: silentLog })
    manager.add(managed(ansibleRunOptions({ backoff: { baseDelayMs: 50, maxDelayMs: 500 } })))
    await manager.start()
  }
  before(async () => {
    await installKinds(oarlock.client, kinds)
    runs = new ManagedObjects(oarlock.client, ansibleRunResource)
    await startProvider()
  })
  after(() => manager.stop({ graceMs: 2_000 }))

  const path = (name: string) => join(oarlock.dataDir, name)
  const playbook = (tasks: string) => `- hosts: all\n  gather_facts: false\n  tasks:\n${tasks.replaceAll(/^/gm, '    ')}\n`
  const create = (name: string, tasks: string, more: object = {}) =>
    runs.handle.create({
      metadata: { name, namespace },
      spec: {
        forProvider: {
          source: { inline: { files: { 'site.yml': playbook(tasks) } } },
          playbooks: ['site.yml'],
          inventory: { hosts: { web1: { ansible_connection: 'local' } } },
          retry: { limit: 0 },
          ...more,
        },
      },
    })

  test('deploy/example.yaml is applied, publishes its outputs, is changed and destroyed', { timeout: 400_000 }, async () => {
    const file = path('motd')
    const text = readFileSync('examples/providers/ansible/deploy/example.yaml', 'utf8').replaceAll('/tmp/motd', file)
    for (const document of parseAllDocuments(text)) {
      const object = document.toJSON() as KubeObject
      await oarlock.client.resource(await oarlock.client.discover(object.apiVersion, object.kind)).create(object)
    }
    // On a machine with load Ansible takes longer than a condition is awaited.
    await eventually(() => existsSync(file), 'the file', 120_000)
    const ready = await runs.until('motd', 'Ready', 'Available')
    equal(readFileSync(file, 'utf8'), 'managed by Oarlock, contact operations@example.com\n')
    deepEqual(ready.status?.atProvider, { outputs: { file }, hosts: 1 })
    const secret = await eventually(
      () => oarlock.client.resource(secretResource).getOrUndefined('motd-outputs', { namespace }),
      'the connection details',
    )
    equal(Buffer.from(secret?.data?.file ?? '', 'base64').toString(), file)
    const second = path('motd-2')
    await runs.patch('motd', { spec: { forProvider: { variables: { path: second } } } })
    await eventually(() => existsSync(second), 'the second file', 120_000)
    await runs.until('motd', 'Ready', 'Available')
    await runs.handle.delete('motd', { namespace })
    await runs.untilGone('motd')
    equal(existsSync(second), false)
  })

  test('a failed task is in the conditions, and is repeated when that is requested', { timeout: 300_000 }, async () => {
    const tasks = `- name: Need the disk\n  ansible.builtin.command: { cmd: "test -e ${path('disk')}" }\n  changed_when: false`
    await create('broken', tasks, { check: false })
    const failed = await runs.until('broken', 'Synced', 'ReconcileError', 'task "Need the disk" failed on web1')
    match(findCondition(failed.status?.conditions, 'Synced')?.message ?? '', /web1: ok=0 changed=0 failed=1/)
    writeFileSync(path('disk'), '')
    await runs.annotate('broken', { [annotations.reconcileRequestedAt]: 'now' })
    await runs.until('broken', 'Ready', 'Available')
  })

  test('a long playbook shows its task, survives a restart of the provider, and is started once', { timeout: 300_000 }, async () => {
    const tasks = `- name: Wait for the go
  ansible.builtin.shell: "echo x >> ${path('long')}; while [ ! -e ${path('go')} ]; do sleep 0.05; done"`
    await create('long', tasks, { check: false })
    const waiting = await runs.until('long', 'Ready', 'Creating', 'Wait for the go')
    equal(waiting.status?.run?.phase, 'Applying')
    await eventually(() => existsSync(path('long')), 'the start of the program', 40_000)
    await manager.stop({ graceMs: 2_000 })
    await startProvider()
    writeFileSync(path('go'), '')
    await runs.until('long', 'Ready', 'Available')
    equal(readFileSync(path('long'), 'utf8'), 'x\n')
  })
})
