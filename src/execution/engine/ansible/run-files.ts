import { delimiter, join, relative } from 'node:path'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { callbackPlugin } from './callback-plugin.ts'
import { inventoryFiles } from './inventory-files.ts'
import { variablesFile } from './variables-file.ts'

/** Paths of what the engine writes for its programs. */
const inputsOf = ({ inputs }: Pick<EngineContext, 'inputs'>) => ({
  callbacks: join(inputs, 'ansible-callbacks'),
  variables: join(inputs, 'ansible-variables.yml'),
  knownHosts: join(inputs, 'ansible-known-hosts'),
  privateKey: join(inputs, 'ansible-private-key'),
  becomePassword: join(inputs, 'ansible-become-password'),
  vaultPassword: (id: string) => join(inputs, `ansible-vault-${id}`),
  inventory: (name: string) => join(inputs, `ansible-${name}`),
})

export const outputsPath = ({ scratch }: Pick<EngineContext, 'scratch'>): string => join(scratch, 'ansible-outputs.jsonl')

/**
 * Writes the callback plugin, with this name, the variables, the inventory and the credentials of a Run. They are readable by its user only.
 * @returns the arguments that every command of the Run has. @throws {EngineError} InvalidConfiguration
 */
export async function writeRunFiles(context: EngineContext, plugin: string): Promise<string[]> {
  const { files, spec, variables, secrets } = context
  const options = spec.ansible ?? { playbooks: [] }
  const { become, vaultPasswords = [], hostKeyChecking = true, knownHosts } = options
  const paths = inputsOf(context)
  const args: string[] = []
  await files.makeDirectory(paths.callbacks, 0o755)
  await files.write(join(paths.callbacks, `${plugin}.py`), callbackPlugin(plugin))
  await files.write(paths.variables, variablesFile(variables, spec.variables))
  args.push(`--extra-vars=@${paths.variables}`)
  for (const file of inventoryFiles(options.inventory, variables, spec.variables)) {
    if ('path' in file) {
      args.push(`--inventory=${join(context.directory, file.path)}`)
      continue
    }
    await files.write(paths.inventory(file.name), file.text)
    args.push(`--inventory=${paths.inventory(file.name)}`)
  }
  const secretOf = (field: string): string => {
    const value = secrets[field]
    if (value !== undefined) return value
    throw new EngineError('InvalidConfiguration', `${field} has no value`, { retryable: false })
  }
  for (const { id } of vaultPasswords) {
    await files.write(paths.vaultPassword(id), secretOf(`spec.ansible.vaultPasswords[${id}].secretKeyRef`))
    args.push(`--vault-id=${id}@${paths.vaultPassword(id)}`)
  }
  if (options.privateKeySecretRef) {
    // A key without its last line feed is rejected.
    await files.write(paths.privateKey, `${secretOf('spec.ansible.privateKeySecretRef').trimEnd()}\n`)
    args.push(`--private-key=${paths.privateKey}`)
  }
  if (become?.passwordSecretRef) {
    await files.write(paths.becomePassword, secretOf('spec.ansible.become.passwordSecretRef'))
    args.push(`--become-password-file=${paths.becomePassword}`)
  }
  if (hostKeyChecking) await files.write(paths.knownHosts, knownHosts === undefined ? '' : `${knownHosts.trimEnd()}\n`)
  if (become?.enabled) args.push('--become')
  if (become?.user !== undefined) args.push(`--become-user=${become.user}`)
  if (become?.method !== undefined) args.push(`--become-method=${become.method}`)
  if (options.user !== undefined) args.push(`--user=${options.user}`)
  if (options.tags) args.push(`--tags=${options.tags.join(',')}`)
  if (options.skipTags) args.push(`--skip-tags=${options.skipTags.join(',')}`)
  if (options.limit !== undefined) args.push(`--limit=${options.limit}`)
  if (options.forks !== undefined) args.push(`--forks=${options.forks}`)
  if (options.verbosity) args.push(`-${'v'.repeat(options.verbosity)}`)
  return args
}

/** Of every command; it overrides ansible.cfg of the source. `content` has the paths of installed collections and roles. */
export function commandEnv(context: EngineContext, plugin: string, content: Readonly<Record<string, string>>): Record<string, string> {
  const { env, spec } = context
  const { callbacks = [], hostKeyChecking = true } = spec.ansible ?? { playbooks: [] }
  const merged = (...paths: (string | undefined)[]) => paths.filter(path => path !== undefined && path !== '').join(delimiter)
  const { ANSIBLE_COLLECTIONS_PATH: collections, ANSIBLE_ROLES_PATH: roles } = content
  return {
    ...env,
    // Ansible requires a locale with UTF-8.
    ...(env.LC_ALL === undefined && { LC_ALL: 'C.UTF-8' }),
    ...(collections !== undefined && {
      ANSIBLE_COLLECTIONS_PATH: merged(collections, env.ANSIBLE_COLLECTIONS_PATH ?? '/usr/share/ansible/collections'),
    }),
    ...(roles !== undefined && { ANSIBLE_ROLES_PATH: merged(roles, env.ANSIBLE_ROLES_PATH ?? '/etc/ansible/roles') }),
    ANSIBLE_CALLBACK_PLUGINS: merged(inputsOf(context).callbacks, env.ANSIBLE_CALLBACK_PLUGINS),
    ANSIBLE_CALLBACKS_ENABLED: [plugin, ...callbacks].join(','),
    ANSIBLE_HOST_KEY_CHECKING: hostKeyChecking ? 'True' : 'False',
    // Relative to the directory of ansible-playbook: the path of a socket has less than 108 bytes, and that of the HOME of a Run alone can have them.
    ANSIBLE_SSH_CONTROL_PATH:
      env.ANSIBLE_SSH_CONTROL_PATH ?? join(relative(context.directory, context.scratch).replaceAll('%', '%%%%'), '%%C'),
    ANSIBLE_SSH_ARGS: sshArgs(hostKeyChecking ? inputsOf(context).knownHosts : undefined, env.ANSIBLE_SSH_ARGS),
    ANSIBLE_RETRY_FILES_ENABLED: 'False',
    ANSIBLE_NOCOLOR: '1',
    ANSIBLE_NOCOWS: '1',
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONUNBUFFERED: '1',
  }
}

/**
 * Which keys of hosts are accepted: never by the files of the machine or of its user. The first value of an option counts for ssh, and these arguments
 * come before `ansible_ssh_common_args` and `ansible_ssh_extra_args`.
 */
function sshArgs(knownHosts: string | undefined, own = '-C -o ControlMaster=auto -o ControlPersist=60s'): string {
  const file = knownHosts === undefined ? '/dev/null' : `"${knownHosts.replaceAll('%', '%%')}"`
  return `-o StrictHostKeyChecking=${knownHosts === undefined ? 'no' : 'yes'} -o 'UserKnownHostsFile=${file}' -o GlobalKnownHostsFile=/dev/null ${own}`
}
