import type { Detection } from './engine.ts'
import { EngineError } from './engine-error.ts'
import { captureStdout, fileIdentity, findExecutable } from './find-executable.ts'

export type EngineProgramOptions<Info> = {
  /** For messages, such as `OpenTofu`. */
  readonly title: string
  readonly name: string
  /** The variable that may have its path. */
  readonly override: string
  readonly howToInstall: string
  readonly versionArgs: readonly string[]
  /** For the command that prints the version, besides PATH. */
  readonly versionEnv: Readonly<Record<string, string>>
  /** Reads what the command prints. @throws {Error} for anything else, or a version that is not supported. */
  read(output: string): Info
}

/** The program of an engine: where it is, and its version, which is read once for each file. */
export class EngineProgram<Info extends { readonly version: string }> {
  readonly #options: EngineProgramOptions<Info>
  readonly #env: Readonly<Record<string, string | undefined>>
  /** By path; valid as long as the file is the same. */
  readonly #known = new Map<string, { info: Info; file: string }>()

  /** `env`: the environment in which {@link find} searches. */
  constructor(options: EngineProgramOptions<Info>, env: Readonly<Record<string, string | undefined>>) {
    this.#options = options
    this.#env = env
  }

  async detect(env: Readonly<Record<string, string | undefined>>, { isFresh = false } = {}): Promise<Detection> {
    const { name, override, howToInstall, versionArgs, versionEnv, read } = this.#options
    const { path, reasons } = await findExecutable(name, override, env)
    if (path === undefined) return { found: false, reasons, howToInstall }
    const known = this.#known.get(path)
    const file = await fileIdentity(path)
    if (!isFresh && known?.file === file) return { found: true, version: known.info.version, path }
    try {
      const info = read(await captureStdout(path, [...versionArgs], { ...versionEnv, PATH: env.PATH ?? '' }))
      this.#known.set(path, { info, file })
      return { found: true, version: info.version, path }
    } catch (error) {
      const command = [name, ...versionArgs].join(' ')
      const failure = `${path} (found, but "${command}" failed: ${(error as Error).message.split('\n')[0]})`
      return { found: false, reasons: [failure], howToInstall }
    }
  }

  /** The program to use. @throws {EngineError} EngineNotFound, with the places that were searched. */
  async find(): Promise<{ path: string; version: string }> {
    const detection = await this.detect(this.#env)
    if (detection.found) return detection
    const { title } = this.#options
    throw new EngineError('EngineNotFound', `${title} was not found: ${detection.reasons.join(', ')}; ${detection.howToInstall}`, {
      retryable: false,
    })
  }

  /** What was read of a program; known after {@link find}. */
  infoOf(path: string): Info | undefined {
    return this.#known.get(path)?.info
  }
}
