/** Runs of tests that install dependencies, with real package managers. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import type { IsolationLevel, Network } from '../../api/index.ts'
import { killRunProcesses } from '../workspace/index.ts'
import { base, open } from '../workspace/isolation/isolated-run.testing.ts'
import type { InstallContext } from './install-context.ts'
import type { DependencyStoreOptions } from './store/dependency-store.ts'

let stores = 0

/** A store of a test. */
export function createStore(): DependencyStoreOptions {
  return { directory: join(base, `dependencies-${stores++}`), domain: 'test', recheckMs: 0 }
}

export type RunOptions = {
  level: IsolationLevel
  network?: Network
  store: DependencyStoreOptions
  files: Record<string, string | Buffer>
  env?: Record<string, string>
  credentialNames?: string[]
  workerEnvNames?: string[]
  /** Further paths that the sandbox shows. */
  readable?: readonly string[]
}

/** A new Run with this source. */
export async function startRun(t: TestContext, options: RunOptions) {
  const { level, network = 'Host', store, files } = options
  const run = await open(t, level, { network, readable: [...(options.readable ?? [])] })
  const { directory, isolation } = run
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory.work, path)), { recursive: true })
    writeFileSync(join(directory.work, path), content)
  }
  const log: string[] = []
  const context: InstallContext = {
    runName: `run-${run.runUid.slice(0, 5)}`,
    ...{ sourceRoot: directory.work, scratch: directory.scratch, files: directory.files },
    env: { PATH: '/usr/bin:/bin', ...options.env },
    credentialNames: options.credentialNames ?? [],
    workerEnvNames: options.workerEnvNames ?? [],
    ...{ run: run.runner, signal: run.abort.signal },
    log: line => void log.push(line),
    atEnd: release => t.after(release),
    dependencies: {
      ...{ store, isolation },
      mayMoveFiles: level === 'Sandbox' && network !== 'Host',
      endPrograms: async () => {
        await killRunProcesses(run.runUid)
      },
    },
  }
  return { ...run, context, log }
}
