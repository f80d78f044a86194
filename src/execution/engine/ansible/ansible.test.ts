import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AnsibleOptions } from '../../../api/index.ts'
import type { EngineContext, PlanResult } from '../engine.ts'
import type { EngineError } from '../engine-error.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { createAnsibleEngine } from './ansible.ts'

const detection = await createAnsibleEngine().detect(process.env)
const skip = detection.found ? false : `needs ansible-playbook: ${detection.reasons.join(', ')}`
const engine = createAnsibleEngine()
const env = { PATH: '/usr/local/bin:/usr/bin:/bin' }
const local = { hosts: { web1: { ansible_connection: 'local' }, web2: { ansible_connection: 'local' } } }
const spec = (ansible: Partial<AnsibleOptions> = {}, more: Partial<EngineContext['spec']> = {}): EngineContext['spec'] => ({
  engine: 'ansible',
  ansible: { playbooks: ['site.yml'], inventory: { hosts: { web1: local.hosts.web1 } }, ...ansible },
  ...more,
})
const play = (tasks: string, hosts = 'all') => `- hosts: ${hosts}\n  gather_facts: false\n  tasks:\n${tasks.replaceAll(/^/gm, '    ')}\n`
const writeFileTask = `- name: Write the file
  ansible.builtin.copy: { content: "{{ text }}", dest: "{{ path }}", mode: "0600" }`
const run = async (context: EngineContext, options = {}) => {
  await engine.prepare(context)
  return await engine.apply(context, await engine.plan(context, options))
}
const rejectsWith = (reason: string, message: RegExp) => (error: EngineError) => {
  assert.equal(error.reason, reason, error.message)
  assert.match(error.message, message)
  return true
}

test('a playbook is planned in check mode, applied, and then in sync; set_stats has the outputs', { skip }, async t => {
  const tasks = `${writeFileTask}
- ansible.builtin.set_stats: { data: { url: "file://{{ path }}", token: { value: "t0psecret", sensitive: true } } }`
  const harness = await createEngineHarness(t, { 'site.yml': play(tasks) }, { spec: spec(), env })
  const path = join(harness.root, 'written')
  const variables = { path, text: 'hello' }
  const context = await harness.nextRun({ variables })
  await engine.prepare(context)
  const plan = await engine.plan(context)
  assert.deepEqual([plan.hasChanges, plan.add, existsSync(path)], [true, 1, false])
  assert.match(plan.diff?.text ?? '', /\+hello/)
  assert.deepEqual(plan.diff?.document, {
    intent: 'apply',
    changes: [{ host: 'web1', task: 'Write the file' }],
    hosts: { web1: { changed: 1, failures: 0, ignored: 0, ok: 2, rescued: 0, skipped: 0, unreachable: 0 } },
  })
  const result = await engine.apply(context, plan)
  assert.equal(await readFile(path, 'utf8'), 'hello')
  const outputs = { url: { value: `file://${path}`, sensitive: false }, token: { value: 't0psecret', sensitive: true } }
  assert.deepEqual(result, {
    ...{ outputs, resources: 1, changed: true },
    note: 'web1: ok=2 changed=1 failed=0 unreachable=0 skipped=0',
  })
  assert.deepEqual(harness.progress.at(-1), { done: 1, total: 2, current: 'ansible.builtin.set_stats', running: [] })
  assert.ok(harness.progress.some(step => JSON.stringify(step).includes('"running":["web1: Write the file"]')))
  assert.ok(!harness.log.some(line => line.includes('::oarlock-ansible')), harness.log.join('\n'))

  const again = await run(await harness.nextRun({ variables }))
  assert.deepEqual([again.changed, again.outputs], [false, outputs])
  assert.match(again.note ?? '', /^web1: ok=2 changed=0/)
  // Drift.
  await writeFile(path, 'other')
  const drifted = await harness.nextRun({ variables })
  await engine.prepare(drifted)
  const drift = await engine.plan(drifted)
  assert.deepEqual([drift.hasChanges, drift.change], [true, 1])
  assert.match(drift.note ?? '', /changed something in the last Apply and would again, .*"Write the file" \(web1\)/)
})

test('new inputs are applied also if check mode finds no changes, because it skips some tasks', { skip }, async t => {
  const harness = await createEngineHarness(
    t,
    { 'site.yml': play('- ansible.builtin.command: { cmd: "touch {{ path }}" }') },
    { spec: spec(), env },
  )
  const variables = { path: join(harness.root, 'touched') }
  assert.equal((await run(await harness.nextRun({ variables }))).changed, true)
  assert.ok(existsSync(variables.path))
  assert.equal((await run(await harness.nextRun({ variables }))).changed, false)
  assert.equal((await run(await harness.nextRun({ variables: { ...variables, more: 1 } }))).changed, true)
})

test('with checkAfterApply, the message names tasks that are not idempotent', { skip }, async t => {
  const tasks = '- name: Write the time\n  ansible.builtin.copy: { content: "{{ now() }}", dest: "{{ path }}" }'
  const harness = await createEngineHarness(t, { 'site.yml': play(tasks) }, { spec: spec({ checkAfterApply: true }), env })
  const result = await run(await harness.nextRun({ variables: { path: join(harness.root, 'time') } }))
  assert.match(result.note ?? '', /not idempotent, because a check right after the apply finds changes: "Write the time" \(web1\)$/)
})

test('a failed task is reported with host and reason, without what no_log hides and without secrets', { skip }, async t => {
  const tasks = `- name: Break
  ansible.builtin.fail: { msg: "disk is full on {{ password }}" }
  when: inventory_hostname == 'web1'
- name: Hide
  ansible.builtin.fail: { msg: "{{ 'hidden' ~ ' text' }}" }
  no_log: true`
  const more = { variables: { password: 'hunter2secret' }, sensitiveNames: ['password'], env }
  const options = { spec: spec({ inventory: local, check: false }), ...more }
  const harness = await createEngineHarness(t, { 'site.yml': play(tasks) }, options)
  await assert.rejects(
    run(harness.context),
    rejectsWith(
      'ApplyFailed',
      /^task "Break" failed on web1: disk is full on \*\*\*; task "Hide" failed on web2: the result is hidden \(no_log\); web1: ok=0 changed=0 failed=1/,
    ),
  )
  assert.ok(!harness.log.some(line => line.includes('hidden text')))
})

test('an unreachable host is reported', { skip }, async t => {
  const inventory = { text: 'gone ansible_host=127.0.0.1 ansible_port=9 ansible_connection=ssh\n' }
  const harness = await createEngineHarness(t, { 'site.yml': play('- ansible.builtin.ping:') }, { spec: spec({ inventory }), env })
  await assert.rejects(
    run(harness.context),
    rejectsWith('PlanFailed', /^host gone is unreachable in task "ansible.builtin.ping": .*unreachable=1/),
  )
})

test('the inventory comes from text, groups, a file of the source and a variable', { skip }, async t => {
  const files = {
    'site.yml': play('- ansible.builtin.debug: { msg: "{{ inventory_hostname }} {{ color }}" }'),
    'hosts/prod.ini': 'file1 ansible_connection=local color=red\n',
  }
  const inventory = {
    path: 'hosts/prod.ini',
    text: 'all:\n  hosts:\n    text1: { ansible_connection: local, color: green }\n',
    hosts: { host1: { ansible_connection: 'local' } },
    groups: { blue: { hosts: ['host1'], vars: { color: 'blue' } } },
    variable: 'servers',
  }
  const servers = { web: { hosts: { output1: {} }, vars: { ansible_connection: 'local', color: 'black' } } }
  const harness = await createEngineHarness(t, files, { spec: spec({ inventory }), env, variables: { servers } })
  assert.equal((await run(harness.context)).resources, 4)
  for (const text of ['file1 red', 'text1 green', 'host1 blue', 'output1 black'])
    assert.ok(
      harness.log.some(line => line.includes(`"msg": "${text}"`)),
      text,
    )
  const missing = await harness.nextRun({ variables: {} })
  await assert.rejects(engine.prepare(missing), rejectsWith('InvalidConfiguration', /inventory.variable names "servers", which is not set/))
})

test('without a matching host nothing is reported as applied', { skip }, async t => {
  const harness = await createEngineHarness(t, { 'site.yml': play('- ansible.builtin.ping:', 'databases') }, { spec: spec(), env })
  await assert.rejects(run(harness.context), rejectsWith('InvalidConfiguration', /no host of the inventory matches/))
})

test('a playbook that does not exist, or has an error, is a configuration error', { skip }, async t => {
  const harness = await createEngineHarness(t, { 'broken.yml': '- hosts: all\n  taskz: []\n' }, { spec: spec(), env })
  await assert.rejects(run(harness.context), rejectsWith('InvalidConfiguration', /the playbook: site.yml could not be found/))
  await assert.rejects(
    run(await harness.nextRun({ spec: spec({ playbooks: ['broken.yml'] }) })),
    rejectsWith('InvalidConfiguration', /taskz/),
  )
})

test('tags, limit, several playbooks and Destroy', { skip }, async t => {
  const task = (name: string) =>
    play(`- name: ${name}\n  ansible.builtin.debug: { msg: "ran ${name} {{ inventory_hostname }}" }\n  tags: [${name}]`)
  const files = { 'site.yml': task('one'), 'two.yml': task('two'), 'three.yml': task('three'), 'down.yml': task('down') }
  const options = { playbooks: ['site.yml', 'two.yml', 'three.yml'], skipTags: ['two'], limit: 'web2', inventory: local }
  const harness = await createEngineHarness(t, files, { spec: spec(options), env })
  await run(harness.context)
  const ran = () => [...new Set(harness.log.flatMap(line => /"msg": "(ran .*)"/.exec(line)?.[1] ?? []))]
  assert.deepEqual(ran(), ['ran one web2', 'ran three web2'])
  harness.log.length = 0
  const without = await run(await harness.nextRun({ isDestroy: true }), { destroy: true })
  assert.deepEqual([without.resources, without.note], [0, 'spec.ansible.destroyPlaybook is not set, so nothing was done on the hosts'])
  assert.deepEqual(ran(), [])
  const destroySpec = spec({ ...options, destroyPlaybook: 'down.yml' })
  await run(await harness.nextRun({ isDestroy: true, spec: destroySpec }), { destroy: true })
  assert.deepEqual(ran(), ['ran down web2'])
})

test('what ansible-vault has encrypted is decrypted with the password of a Secret', { skip }, async t => {
  const harness = await createEngineHarness(t, { 'site.yml': play(writeFileTask) }, {})
  const passwordFile = join(harness.root, 'password')
  await writeFile(passwordFile, 'vault-passw0rd')
  const encrypt = spawnSync('ansible-vault', ['encrypt_string', '--vault-id', `prod@${passwordFile}`, 'from the vault', '--name', 'text'], {
    encoding: 'utf8',
    env: { ...process.env, HOME: harness.root, LC_ALL: 'C.UTF-8' },
  })
  assert.equal(encrypt.status, 0, encrypt.stderr)
  await harness.write({ 'group_vars/all.yml': encrypt.stdout })
  const path = join(harness.root, 'decrypted')
  const vaultPasswords = [{ id: 'prod', secretKeyRef: { name: 'vault', key: 'password' } }]
  const secrets = { 'spec.ansible.vaultPasswords[prod].secretKeyRef': 'vault-passw0rd' }
  const context = await harness.nextRun({ spec: spec({ vaultPasswords }), secrets, variables: { path }, env })
  await run(context)
  assert.equal(await readFile(path, 'utf8'), 'from the vault')
})

test('with approval an apply requires approvalBinding Inputs, and its digest covers the inputs', { skip }, async t => {
  const files = { 'site.yml': play(writeFileTask) }
  const harness = await createEngineHarness(t, files, { spec: spec({}, { approval: 'Manual' }), env })
  const variables = { path: join(harness.root, 'approved'), text: 'a' }
  const unbound = await harness.nextRun({ variables })
  await engine.prepare(unbound)
  await assert.rejects(engine.plan(unbound), rejectsWith('ApprovalNotBound', /spec.ansible.approvalBinding: Inputs$/))

  const bound = { spec: spec({ approvalBinding: 'Inputs' as const }, { approval: 'Manual' }), variables }
  const planned = await harness.nextRun(bound)
  await engine.prepare(planned)
  const plan = await engine.plan(planned)
  const stored = await readFile(plan.file!)
  const read = async (overrides: Partial<EngineContext>): Promise<[EngineContext, PlanResult]> => {
    const context = await harness.nextRun({ ...bound, ...overrides })
    await engine.prepare(context)
    const file = join(context.inputs, 'approved.tfplan')
    await writeFile(file, stored)
    return [context, await engine.readPlan(context, file)]
  }
  const [context, approved] = await read({})
  assert.equal(approved.digest, plan.digest)
  for (const other of [
    { variables: { ...variables, text: 'b' } },
    { sourceDigest: 'sha256:other' },
    { spec: spec({ approvalBinding: 'Inputs', limit: 'web1' }, { approval: 'Manual' }) },
  ])
    assert.notEqual((await read(other))[1].digest, plan.digest, JSON.stringify(other))
  assert.equal((await engine.apply(context, approved)).changed, true)
  assert.equal(await readFile(variables.path, 'utf8'), 'a')
})

test('an interrupt ends the whole group, and the Run reports the tasks that were running', { skip, timeout: 60_000 }, async t => {
  const tasks = '- name: Wait long\n  ansible.builtin.command: { cmd: "sleep 300.25" }'
  const pending: unknown[] = []
  const harness = await createEngineHarness(t, { 'site.yml': play(tasks) }, { spec: spec({ check: false, inventory: local }), env })
  const context = await harness.nextRun({
    pendingOperations: (operations, options) => void pending.push(...operations, options),
    progress: step => {
      if (step.running?.length === 2) setTimeout(() => harness.abort.abort(), 500)
    },
  })
  await assert.rejects(run(context), rejectsWith('Interrupted', /ansible-playbook was interrupted during apply/))
  assert.deepEqual(pending, [{ type: 'running', urn: 'web1: Wait long' }, { type: 'running', urn: 'web2: Wait long' }, { isOwn: true }])
})

test('collections and roles are installed once, by exact version', { skip, timeout: 120_000 }, async t => {
  const harness = await createEngineHarness(t, {}, { spec: spec(), env })
  const galaxy = (args: string[], cwd: string) => {
    const { status, stderr } = spawnSync('ansible-galaxy', args, {
      ...{ cwd, encoding: 'utf8' },
      env: { ...process.env, HOME: harness.root, LC_ALL: 'C.UTF-8' },
    })
    assert.equal(status, 0, stderr)
  }
  const build = join(harness.root, 'build')
  await mkdir(build)
  galaxy(['collection', 'init', 'acme.tools'], build)
  await mkdir(join(build, 'acme/tools/roles/greet/tasks'), { recursive: true })
  await writeFile(join(build, 'acme/tools/roles/greet/tasks/main.yml'), '- ansible.builtin.debug: { msg: from the collection }\n')
  galaxy(['collection', 'build', 'acme/tools'], build)
  const archive = await readFile(join(build, 'acme-tools-1.0.0.tar.gz'))
  // A role in a repository.
  const role = join(harness.root, 'role')
  await mkdir(join(role, 'tasks'), { recursive: true })
  await mkdir(join(role, 'meta'))
  await writeFile(
    join(role, 'meta/main.yml'),
    'galaxy_info: { author: a, description: b, license: c, min_ansible_version: "2.12" }\ndependencies: []\n',
  )
  await writeFile(join(role, 'tasks/main.yml'), '- ansible.builtin.debug: { msg: from the role }\n')
  const git = (...args: string[]) => {
    const { status, stderr } = spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: role,
      encoding: 'utf8',
    })
    assert.equal(status, 0, stderr)
  }
  git('init', '-q')
  git('add', '.')
  git('commit', '-qm', 'role')
  git('tag', 'v1.2.0')

  const { createHash } = await import('node:crypto')
  const digest = createHash('sha256').update(archive).digest('hex')
  const requirements = (version: string, checksum: string) => `collections:
  - { name: ./acme-tools-1.0.0.tar.gz, type: file, checksum: "sha256:${checksum}" }
roles:
  - { name: greet, src: "git+file://${role}", version: "${version}" }
`
  const tasks = '- ansible.builtin.include_role: { name: acme.tools.greet }\n- ansible.builtin.include_role: { name: greet }'
  await harness.write({ 'site.yml': play(tasks), 'requirements.yml': requirements('v1.2.0', digest) })
  const outcomes: string[] = []
  const host = { ...harness.context.dependencies, onInstalled: ({ source }: { source: string }) => void outcomes.push(source) }
  for (let count = 0; count < 2; count++) {
    harness.log.length = 0
    const context = await harness.nextRun({ dependencies: host })
    await writeFile(join(context.directory, 'acme-tools-1.0.0.tar.gz'), archive)
    await run(context)
    for (const text of ['from the collection', 'from the role'])
      assert.ok(
        harness.log.some(line => line.includes(text)),
        harness.log.join('\n'),
      )
  }
  assert.deepEqual(outcomes, ['Installed', 'Cached'])
  await rm(build, { recursive: true })

  for (const [text, message] of [
    [requirements('main', digest), /role greet has version "main", which is not exact/],
    [requirements('v1.2.0', digest.replaceAll(/./g, '0')), /the checksum of \.\/acme-tools-1\.0\.0\.tar\.gz is sha256:/],
    [
      'collections: [{ name: acme.tools, version: ">=1.0" }]',
      /collection acme.tools has version ">=1.0", which is not exact; set an exact one/,
    ],
    ['collections: [acme.tools]', /"acme.tools" has no version/],
    ['collections: [{ name: "https://example.com/acme-tools-1.0.0.tar.gz" }]', /requires a checksum/],
    [
      'roles: [{ name: web, src: "https://example.com/web-1.0.0.tar.gz", version: 1.0.0 }]',
      /role web comes from https:.*, which no version fixes; use its repository/,
    ],
  ] as const) {
    await harness.write({ 'requirements.yml': text })
    const context = await harness.nextRun()
    await writeFile(join(context.directory, 'acme-tools-1.0.0.tar.gz'), archive)
    await assert.rejects(engine.prepare(context), (error: Error) => assert.match(error.message, message) === undefined)
  }
})

test('templates in values from other Stacks and Secrets are text; those of spec.variables are evaluated', { skip }, async t => {
  const tasks = `- ansible.builtin.copy: { content: "{{ [own | string, foreign, nested.list[0], odd] | to_json }}", dest: "{{ path }}", mode: "0600" }`
  const harness = await createEngineHarness(t, { 'site.yml': play(tasks) }, { spec: spec(), env })
  const [path, executed] = [join(harness.root, 'written'), join(harness.root, 'executed')]
  const template = `{{ lookup('pipe', 'touch ${executed}') }}`
  const own = { own: '{{ 1 + 1 }}', path }
  const inventory = { all: { hosts: { web1: { ansible_connection: 'local', from_inventory: template } } } }
  const odd = 'a\u007f\u2028"\\: #\n'
  const variables = { ...own, foreign: template, nested: { list: [template] }, odd, inventory }
  await run(await harness.nextRun({ variables, spec: spec({ inventory: { variable: 'inventory' } }, { variables: own }) }))
  assert.deepEqual(JSON.parse(await readFile(path, 'utf8')), ['2', template, template, odd])
  assert.equal(existsSync(executed), false)
})
