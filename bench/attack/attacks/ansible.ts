/** Settings of Ansible in the source, which name programs and files: all of it is the author's program, and none may act outside of the sandbox. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Attack, NotRunHere } from '../attack.ts'

const program = '/usr/bin/ansible-playbook'

/** Runs when Ansible loads it, before any task. */
const plugin = (marker: string, victim: string) => `
from ansible.plugins.callback import CallbackBase
import os
for path in [${JSON.stringify(marker)}, os.path.dirname(os.getcwd()) + '/../other-run']:
    try: open(path, 'w').write('x')
    except OSError as error: print('REFUSED', error.errno)
try: print('STOLEN', open(${JSON.stringify(victim)}).read().encode().hex())
except OSError as error: print('REFUSED', error.errno)
print('LOADED uid', os.getuid())
class CallbackModule(CallbackBase):
    CALLBACK_TYPE = 'notification'
    CALLBACK_NAME = 'attack'
    CALLBACK_NEEDS_WHITELIST = False
`

const settings: Attack = {
  name: 'ansible-settings',
  actor: 'stack author',
  promise: 'Sandbox',
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    if (!existsSync(program)) throw new NotRunHere('there is no ansible-playbook')
    const victim = target.createVictimFile()
    const markers = {
      plugin: target.newPath(),
      log: target.newPath(),
      vault: target.newPath(),
      inventory: target.newPath(),
      temp: target.newPath(),
    }
    const cfg = `[defaults]
callback_plugins = ./callbacks
callbacks_enabled = attack
callback_whitelist = attack
log_path = ${markers.log}
vault_password_file = ./vault.sh
inventory = ./inventory.sh
local_tmp = ${markers.temp}
fact_caching = jsonfile
fact_caching_connection = ${join(target.dataDir, 'keys')}
`
    const attempt = (marker: string) =>
      `echo x > ${marker} 2>/dev/null; cat ${victim.path} ${join(target.dataDir, 'pki', 'admin-token')} 2>/dev/null >&2`
    const files = {
      'callbacks/attack.py': plugin(markers.plugin, victim.path),
      'vault.sh': `#!/bin/sh\n${attempt(markers.vault)}\necho secret\n`,
      'inventory.sh': `#!/bin/sh\n${attempt(markers.inventory)}\necho '{"all":{"hosts":["localhost"]}}'\n`,
      'play.yml': `- hosts: localhost\n  connection: local\n  gather_facts: true\n  tasks:\n    - debug: { msg: "PLAYED {{ lookup('file', '${victim.path}', errors='ignore') }}" }\n`,
    }
    const env = [
      { name: 'LC_ALL', value: 'C.UTF-8' },
      // The worker must not start anything with it either.
      { name: 'ANSIBLE_CONFIG', value: './ansible.cfg' },
    ]
    const command = { apply: ['sh', '-c', `chmod +x *.sh; ${program} play.yml; echo ended $?`] }
    const run = (changed: string) =>
      target.runStack({ engine: 'command', source: { inline: { files: { ...files, 'ansible.cfg': changed } } }, env, command })
    const hostile = await run(cfg)
    // What cannot be written ends ansible early: the same without the paths of the machine.
    const own = await run(cfg.replace(/^(log_path|local_tmp|fact_caching\w*) = .*\n/gm, ''))
    control(/LOADED uid \d+/.test(own.log) && /PLAYED/.test(own.log), `the plugin or the playbook did not run: ${own.log.slice(-500)}`)
    const gained = [hostile, own].flatMap(result => target.secretsIn(result.text))
    for (const { log } of [hostile, own]) {
      if (log.includes('STOLEN') || log.includes(victim.text)) gained.push('read a file of the worker')
      if (/LOADED uid 0$/m.test(log) && process.getuid?.() === 0) gained.push('was root')
    }
    if (!victim.isUnchanged()) gained.push('changed a file of the worker')
    for (const [name, path] of Object.entries(markers)) if (existsSync(path)) gained.push(`wrote a file of the machine (${name})`)
    return gained
  },
}

export const ansibleAttacks: readonly Attack[] = [settings]
