import { isolationLevels, labels, type WorkerStatus } from '../../api/index.ts'
import { labelErrors, parseQuantity } from '../../kubernetes/object/index.ts'
import type { Detection } from '../engine/index.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/** What a worker says of itself, so that it gets the Runs that it will do for (docs/queue.md). */
export type WorkerCapabilities = {
  /** Labels of its Worker object. */
  readonly labels: Readonly<Record<string, string>>
  /** Versions by engine; undefined when nobody said so. */
  readonly engines: Readonly<Record<string, string>> | undefined
  readonly capacity: WorkerStatus['capacity']
  /** Levels of isolation; undefined when nobody said so: it finds out by itself. */
  readonly isolation: WorkerStatus['isolation']
}

export const noCapabilities: WorkerCapabilities = { labels: {}, engines: undefined, capacity: undefined, isolation: undefined }

/**
 * Reads OARLOCK_LABELS and OARLOCK_ENGINES (both `key=value,key=value`; `given` labels, from the command line, win), OARLOCK_CPU and
 * OARLOCK_MEMORY (what its Runs may use together, such as `4` and `8Gi`), OARLOCK_ISOLATION_LEVELS (such as `Process,Sandbox`; each is
 * tried again before a Run gets it).
 * @throws {WorkerOptionError} naming the variable, what came and what is allowed.
 */
export function capabilitiesFromEnv(env: Readonly<Record<string, string | undefined>>, given: readonly string[] = []): WorkerCapabilities {
  const own = { ...parsePairs('OARLOCK_LABELS', env.OARLOCK_LABELS?.split(',')), ...parsePairs('--label', given) }
  if (own[labels.pool] !== undefined) throw new WorkerOptionError(`the label ${labels.pool} is set by --pool`)
  const [wrong] = labelErrors(own, 'labels')
  if (wrong) throw new WorkerOptionError(`label ${wrong.field}: ${wrong.message}`)
  const cpu = checkQuantity('OARLOCK_CPU', env.OARLOCK_CPU)
  const memory = checkQuantity('OARLOCK_MEMORY', env.OARLOCK_MEMORY)
  return {
    labels: own,
    engines: env.OARLOCK_ENGINES === undefined ? undefined : parsePairs('OARLOCK_ENGINES', env.OARLOCK_ENGINES.split(',')),
    isolation: parseLevels('OARLOCK_ISOLATION_LEVELS', env.OARLOCK_ISOLATION_LEVELS),
    capacity: cpu || memory ? { ...(cpu && { cpu }), ...(memory && { memory }) } : undefined,
  }
}

function parsePairs(name: string, words: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    words.filter(Boolean).map(word => {
      const at = word.indexOf('=')
      if (at <= 0) throw new WorkerOptionError(`${name} holds ${JSON.stringify(word)}; it must be key=value, several with commas`)
      return [word.slice(0, at).trim(), word.slice(at + 1).trim()]
    }),
  )
}

function parseLevels(name: string, text: string | undefined): WorkerCapabilities['isolation'] {
  return text?.split(',').map(word => {
    const level = isolationLevels.find(each => each === word.trim())
    if (level) return level
    throw new WorkerOptionError(`${name} holds ${JSON.stringify(word)}; it must be some of ${isolationLevels.join(', ')}, with commas`)
  })
}

function checkQuantity(name: string, text: string | undefined): string | undefined {
  if (!text) return undefined
  try {
    parseQuantity(text)
    return text
  } catch (error) {
    throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be a quantity such as 4, 500m or 8Gi: ${(error as Error).message}`)
  }
}

/** Versions of the engines that were found; those without a version of their own (command, manifests) go by Oarlock's. */
export function engineVersions(detected: Readonly<Record<string, Detection>>): Record<string, string> {
  return Object.fromEntries(Object.entries(detected).flatMap(([name, found]) => (found.found ? [[name, found.version]] : [])))
}
