/** A sandboxed Stack that puts programs into the cache of providers, for the other Stacks of its namespace to execute. */
import { join } from 'node:path'
import {
  maliciousOutput,
  maliciousProvider,
  skipWithoutTimeProvider,
  timeProvider,
} from '../../../src/execution/engine/terraform/provider-mirror.testing.ts'
import { changesBy, lockedProvider, overwritingFiles, providerStack } from '../../../test/support/provider-stack.ts'
import { skipWithoutTerraformEngine, terraformEngine } from '../../../test/support/run-program.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import type { Result, Target } from '../target.ts'

const author = { actor: 'stack author', promise: 'Shared providers', slow: true } as const

/** Runs a Stack of the attacker's namespace that gets its providers from a mirror in its own source. */
async function runWith(target: Target, provider: Buffer, files: Record<string, string> = {}): Promise<Result> {
  const path = join(target.allowedDirectory, target.newName('providers'))
  return await target.runStack(providerStack(path, terraformEngine, provider, files))
}

function require(target: Target): void {
  target.requireSandbox()
  const reason = skipWithoutTerraformEngine || skipWithoutTimeProvider
  if (reason) throw new NotRunHere(reason)
}

const locked = () => lockedProvider(terraformEngine)

async function gainedFrom(target: Target): Promise<string[]> {
  const gained: string[] = []
  for (const [name, files] of [
    ['without a lock file', {}],
    ['with a lock file', locked()],
  ] as const) {
    const { run, text } = await runWith(target, timeProvider(), files)
    if (text.includes(maliciousOutput)) gained.push(`a Stack ${name} executed the attacker's program`)
    else if (run?.status?.phase !== 'Succeeded') gained.push(`a Stack ${name} fails: ${run?.status?.message}`)
  }
  return gained
}

const placedProvider: Attack = {
  name: 'provider-cache-placed',
  ...author,
  async attempt(target, control) {
    require(target)
    const { text, log } = await runWith(target, maliciousProvider())
    control(text.includes(maliciousOutput), `the attacker's own Stack does not execute it: ${log}`)
    control(/cached provider/.test(log), `it is not cached for the attacker's own Stack: ${log}`)
    return await gainedFrom(target)
  },
}

const overwrittenProvider: Attack = {
  name: 'provider-cache-overwritten',
  ...author,
  async attempt(target, control) {
    require(target)
    await runWith(target, timeProvider(), locked())
    const cache = join(target.dataDir, 'cache')
    const { log } = await runWith(target, timeProvider(), { ...locked(), ...overwritingFiles(cache) })
    control(/found .*\/cache\//.test(log), `it finds no provider in the cache: ${log}`)
    return [...changesBy(log, cache), ...(await gainedFrom(target))]
  },
}

export const providerCacheAttacks: readonly Attack[] = [placedProvider, overwrittenProvider]
