import { join } from 'node:path'
import type { InstallCommand, PackageManager } from './package-manager.ts'

/** In the Run's directory for files that are no part of the source. */
export const galaxyContentPath = 'ansible-content'

/** $1: where the archives are, $2: lines of sha256sum, $3: where the collections go. */
const verifyAndInstall = `cd "$1" && printf '%s\\n' "$2" | sha256sum --check --strict - && exec ansible-galaxy collection install --no-deps -p "$3" ./*.tar.gz`

/**
 * Collections and roles of Ansible: https://docs.ansible.com/ansible/latest/galaxy/user_guide.html. What they require is not installed with them,
 * because its versions would be those of the day: the requirements file lists it.
 */
export const galaxy: PackageManager = {
  name: 'galaxy',
  program: 'ansible-galaxy',
  versions: [{ kind: 'manager', program: 'ansible-galaxy', args: ['--version'] }],
  howToInstall: 'install ansible-core on the worker: apt-get install ansible-core, or pipx install ansible-core',
  environment: /^ANSIBLE_/,
  machineFiles: ['/etc/ansible/ansible.cfg'],
  trees: 'galaxyContent',
  install: ({ scratch, root, galaxy: content }) => {
    const { file = 'requirements.yml', collections = 0, roles = 0, checksums = {} } = content ?? {}
    const to = (directory: string) => join(scratch, galaxyContentPath, directory)
    const install = (args: readonly string[]): InstallCommand => ({ command: 'ansible-galaxy', args, cwd: root })
    const commands: InstallCommand[] = []
    const lines = Object.entries(checksums).map(([name, digest]) => `${digest}  ${name}`)
    if (collections > 0 && lines.length > 0) {
      const archives = join(scratch, 'ansible-archives')
      commands.push(install(['collection', 'download', '--no-deps', '-r', file, '-p', archives]))
      commands.push({ command: 'sh', args: ['-c', verifyAndInstall, 'oarlock', archives, lines.join('\n'), to('collections')], cwd: root })
    } else if (collections > 0) commands.push(install(['collection', 'install', '--no-deps', '-r', file, '-p', to('collections')]))
    if (roles > 0) commands.push(install(['role', 'install', '--no-deps', '-r', file, '-p', to('roles')]))
    return { commands, env: { LC_ALL: 'C.UTF-8', ANSIBLE_NOCOLOR: '1', ANSIBLE_COLLECTIONS_PATH: to('collections') } }
  },
  programEnv: path => {
    const content = path({ base: 'scratch', path: galaxyContentPath })
    return { ANSIBLE_COLLECTIONS_PATH: join(content, 'collections'), ANSIBLE_ROLES_PATH: join(content, 'roles') }
  },
}
