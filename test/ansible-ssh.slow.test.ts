/** The engine `ansible` with a real sshd: which keys of hosts are accepted, and become. */
import { equal, match, ok, rejects } from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { AnsibleOptions } from '../src/api/index.ts'
import { createEngineHarness } from '../src/execution/engine/engine-harness.testing.ts'
import { loadEngine } from '../src/execution/engine/index.ts'
import { eventually } from './support/eventually.ts'
import { freePorts } from './support/free-ports.ts'

const sshd = '/usr/sbin/sshd'
const engine = await loadEngine('ansible')
const detection = await engine.detect(process.env)
const missing = !detection.found ? 'ansible-playbook' : !existsSync(sshd) ? 'sshd: apt-get install openssh-server' : undefined
const skip = missing === undefined ? (process.getuid?.() === 0 ? false : 'needs root, as which sshd starts sessions') : `needs ${missing}`
const path = (name: string) => join(directory, name)
const read = (name: string) => readFileSync(path(name), 'utf8').trim()
/** With a space, and longer than the path of a socket can be: the directory of a Run is below the data directory of a user. */
const directory = mkdtempSync(join(tmpdir(), `oarlock ssh ${'long-'.repeat(15)}`))
process.env.TMPDIR = directory
let [port, server]: [number, ChildProcess | undefined] = [0, undefined]

before(async () => {
  if (skip) return
  for (const name of ['host-key', 'other-key', 'user-key']) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path(name)])
  ;[port = 0] = await freePorts(1)
  const options = {
    ...{ Port: port, ListenAddress: '127.0.0.1', PidFile: 'none', UsePAM: 'no', StrictModes: 'no', PasswordAuthentication: 'no' },
    ...{ HostKey: `"${path('host-key')}"`, AuthorizedKeysFile: `"${path('user-key.pub')}"`, PermitRootLogin: 'yes' },
  }
  writeFileSync(
    path('sshd_config'),
    Object.entries(options)
      .map(option => `${option.join(' ')}\n`)
      .join(''),
  )
  mkdirSync('/run/sshd', { recursive: true })
  const child = spawn(sshd, ['-D', '-e', '-f', path('sshd_config')], { stdio: ['ignore', 'ignore', 'inherit'] })
  server = child
  await eventually(async () => {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isOpen
  }, `sshd on port ${port}`)
})
after(async () => {
  if (server && server.exitCode === null) {
    const exited = once(server, 'exit')
    server.kill()
    await exited
  }
  rmSync(directory, { recursive: true })
})

const hostOf = (key: string) => `[127.0.0.1]:${port} ${read(`${key}.pub`).split(' ').slice(0, 2).join(' ')}`

async function run(t: TestContext, ansible: Partial<AnsibleOptions>, vars: Record<string, string> = {}) {
  const task = '- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.command: { cmd: id -un }\n'
  const host = { ansible_host: '127.0.0.1', ansible_port: port, ansible_user: userInfo().username, ...vars }
  const spec = {
    engine: 'ansible' as const,
    ansible: {
      ...{ playbooks: ['site.yml'], check: false, verbosity: 1, inventory: { hosts: { server: host } } },
      ...{ privateKeySecretRef: { name: 'key', key: 'ssh-privatekey' }, ...ansible },
    },
  }
  const secrets = { 'spec.ansible.privateKeySecretRef': readFileSync(path('user-key'), 'utf8') }
  const harness = await createEngineHarness(t, { 'site.yml': task }, { spec, secrets, env: { PATH: '/usr/local/bin:/usr/bin:/bin' } })
  await engine.prepare(harness.context)
  await engine.apply(harness.context, await engine.plan(harness.context))
  return harness.log.join('\n')
}

test('a host whose key is in knownHosts is reached, and become changes the user', { skip, timeout: 60_000 }, async t => {
  const become = { enabled: true, method: 'su', user: 'daemon' }
  const log = await run(t, { knownHosts: hostOf('host-key'), become }, { ansible_become_flags: '-s /bin/sh', ansible_remote_tmp: '/tmp' })
  match(log, /"stdout": "daemon"/)
})

test('a host with another key is unreachable, also with ssh arguments of the inventory', { skip, timeout: 60_000 }, async t => {
  const own = { ansible_ssh_common_args: `-o StrictHostKeyChecking=no -o UserKnownHostsFile=${path('accepted').replaceAll(' ', '\\ ')}` }
  for (const vars of [{}, own])
    await rejects(run(t, { knownHosts: hostOf('other-key') }, vars), /host server is unreachable in task .*Host key verification failed/s)
  ok(!existsSync(path('accepted')))
})

test('without hostKeyChecking the host is reached, and the files of the user of the worker are not written', {
  skip,
  timeout: 60_000,
}, async t => {
  const file = join(homedir(), '.ssh', 'known_hosts')
  const contents = () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)
  const old = contents()
  match(await run(t, { hostKeyChecking: false }), new RegExp(userInfo().username))
  equal(contents(), old)
})
