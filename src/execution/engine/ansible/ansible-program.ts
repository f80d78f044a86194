import { EngineProgram } from '../engine-program.ts'

/** Callbacks get every start of a task on a host, and `--become-password-file` exists. */
const minimumVersion = [2, 12] as const

/** ansible-playbook. `env` is the environment in which it is searched for. */
export function ansibleProgram(env: Readonly<Record<string, string | undefined>>): EngineProgram<{ version: string }> {
  return new EngineProgram(
    {
      ...{ title: 'Ansible', name: 'ansible-playbook', override: 'ANSIBLE_PLAYBOOK_BIN', read: readVersion },
      howToInstall:
        'install ansible-core 2.12 or later ("apt-get install ansible-core" or "pipx install ansible-core"), or set ANSIBLE_PLAYBOOK_BIN to the path of ansible-playbook',
      ...{ versionArgs: ['--version'], versionEnv: { HOME: '/nonexistent', LC_ALL: 'C.UTF-8' } },
    },
    env,
  )
}

function readVersion(output: string): { version: string } {
  const version = /^ansible-playbook \[core (\d+\.\d+\.\d+\S*)\]/m.exec(output)?.[1]
  if (version === undefined) throw new Error(`its output has no version of ansible-core: ${JSON.stringify(output.slice(0, 100))}`)
  if (!isSupported(version)) throw new Error(`its version is ${version}, at least ${minimumVersion.join('.')} is required`)
  return { version }
}

function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > minimumVersion[0] || (major === minimumVersion[0] && minor >= minimumVersion[1])
}
