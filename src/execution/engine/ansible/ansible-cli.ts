import type { Detection } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { captureStdout, fileIdentity, findExecutable } from '../find-executable.ts'

const howToInstall =
  'install ansible-core 2.12 or later ("apt-get install ansible-core" or "pipx install ansible-core"), or set ANSIBLE_PLAYBOOK_BIN to the path of ansible-playbook'
/** Callbacks get every start of a task on a host, and `--become-password-file` exists. */
const minimumVersion = [2, 12] as const

/** Finds ansible-playbook. `env` is the environment in which it is searched for. */
export class AnsibleCli {
  readonly #env: Record<string, string | undefined>
  /** By path; valid as long as the file is the same. */
  readonly #versions = new Map<string, { version: string; file: string }>()

  constructor(env: Record<string, string | undefined>) {
    this.#env = env
  }

  async detect(env: Record<string, string | undefined>, { isFresh = false } = {}): Promise<Detection> {
    const { path, reasons } = await findExecutable('ansible-playbook', 'ANSIBLE_PLAYBOOK_BIN', env)
    if (path === undefined) return { found: false, reasons, howToInstall }
    const file = await fileIdentity(path)
    const known = this.#versions.get(path)
    if (!isFresh && known?.file === file) return { found: true, version: known.version, path }
    try {
      const output = await captureStdout(path, ['--version'], { PATH: env.PATH ?? '', HOME: '/nonexistent', LC_ALL: 'C.UTF-8' })
      const version = /^ansible-playbook \[core (\d+\.\d+\.\d+\S*)\]/m.exec(output)?.[1]
      if (version === undefined) throw new Error(`its output has no version of ansible-core: ${JSON.stringify(output.slice(0, 100))}`)
      if (!isSupported(version)) throw new Error(`its version is ${version}, at least ${minimumVersion.join('.')} is required`)
      this.#versions.set(path, { version, file })
      return { found: true, version, path }
    } catch (error) {
      const failure = `${path} (found, but "ansible-playbook --version" failed: ${(error as Error).message.split('\n')[0]})`
      return { found: false, reasons: [failure], howToInstall }
    }
  }

  /** @throws {EngineError} EngineNotFound, with the places that were searched. */
  async find(): Promise<{ path: string; version: string }> {
    const detection = await this.detect(this.#env)
    if (detection.found) return detection
    throw new EngineError('EngineNotFound', `Ansible was not found: ${detection.reasons.join(', ')}; ${detection.howToInstall}`, {
      retryable: false,
    })
  }
}

function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > minimumVersion[0] || (major === minimumVersion[0] && minor >= minimumVersion[1])
}
