import { type Run, satisfiesVersion } from '../../../api/index.ts'
import { type Engine, EngineError } from '../../engine/index.ts'

export type FindEngineOptions = {
  workerName: string
  /** Reports the version found; undefined: the engine is not installed. */
  onEngine?(engine: string, version: string | undefined): void
  /** The program of the engine, for engines that have one. */
  onProgram?(path: string): void
}

/**
 * Checks that the Run's engine is installed in the version that the Stack requires. The Run was scheduled by the versions that the
 * worker registered with, which may have changed since.
 * @throws {EngineError} EngineNotFound or EngineVersionMismatch.
 */
export async function findEngine(
  run: Run,
  engine: Pick<Engine, 'detect'>,
  { workerName, onEngine, onProgram }: FindEngineOptions,
): Promise<void> {
  const { engine: name, placement } = run.spec.stack
  const required = placement?.engineVersion
  const found = await engine.detect(process.env, { isFresh: required !== undefined })
  onEngine?.(name, found.found ? found.version : undefined)
  if (!found.found) {
    const message = `engine ${name} was not found on worker ${workerName}: ${found.reasons.join(', ')}; ${found.howToInstall}`
    throw new EngineError('EngineNotFound', message, { retryable: false })
  }
  if (required !== undefined && !satisfiesVersion(found.version, required)) {
    const message = `${found.path} on worker ${workerName} is ${name} ${found.version}, spec.placement.engineVersion requires ${required}`
    throw new EngineError('EngineVersionMismatch', message, { retryable: true })
  }
  if (found.path) onProgram?.(found.path)
}
