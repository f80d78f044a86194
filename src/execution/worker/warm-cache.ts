import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { EngineName, Run } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { ifMissing } from '../../kubernetes/util/index.ts'
import { type InstalledDependencies, installDependencies } from '../dependencies/index.ts'
import { detectEngines, type EngineContext, loadEngine, ProviderUsage } from '../engine/index.ts'
import {
  createProcessRunner,
  createRunDirectory,
  fetchSource,
  isAbandoned,
  killRunProcesses,
  removeTree,
  resolveRevision,
  temporaryName,
} from '../workspace/index.ts'
import { selectEngineEnvironment } from './engine-environment.ts'
import { createDependencyHost } from './run/dependency-host.ts'
import { contentStoreOf, createIsolation, runCacheDir } from './run/isolation.ts'
import { prepareWorkerDirectories } from './worker-directories.ts'
import { WorkerOptionError } from './worker-option-error.ts'
import { cacheSizes } from './worker-options.ts'

export type WarmCacheOptions = {
  /** The root of a source, absolute. */
  source: string
  /** Of the project in the source. Default: its root. */
  directory?: string | undefined
  /** Default: by the files of the project. */
  engine?: EngineName | undefined
  /** As `oarlock cache list` prints it: `namespace-NAME` or `tenant-UID`, with `process-` before it for Runs without a sandbox. */
  domain: string
  cacheDir: string
  /** Names and patterns of variables that Runs of the worker get (`spec.engineEnvironment` of the WorkerPool). */
  engineEnvironment: readonly string[]
  sandboxBinds: readonly string[]
  env: Readonly<Record<string, string | undefined>>
  signal: AbortSignal
  log(line: string): void
}

/** `installed`: undefined if the project has no packages. */
export type WarmResult = { engine: EngineName | undefined; installed: InstalledDependencies | undefined }

/**
 * Puts what Runs of a trust domain need for a source into the stores of this host, as the first Run would: packages, providers, plugins. It has
 * neither a Stack nor a server, so what depends on values of a Stack (`spec.env`, Secrets) is not what its Runs look for.
 * @throws {WorkerOptionError} {DependencyError} {EngineError} {SourceError}
 */
export async function warmCache(options: WarmCacheOptions): Promise<WarmResult> {
  const { source, cacheDir, env, log, signal } = options
  const sizes = cacheSizes(env)
  const run = runOf(options)
  const runsDir = join(cacheDir, 'warm')
  prepareWorkerDirectories({ runsDir, cacheDir })
  await removeAbandoned(runsDir)
  const own = join(runsDir, temporaryName(run.metadata.uid))
  const directory = await createRunDirectory(own, run.metadata.uid)
  const releases: (() => Promise<void>)[] = []
  const contentStore = contentStoreOf(run, cacheDir, sizes.providerCacheBytes)
  try {
    const isolation = await createIsolation({ run, directory, contentStore, sandboxBinds: options.sandboxBinds, onExceeded: () => {} })
    releases.push(() => isolation.close())
    const path = { path: { path: source } }
    const sources = { allowPaths: [source], signal, cacheDir }
    await fetchSource(path, await resolveRevision(path, sources), directory.work, sources)
    const project = resolve(directory.work, options.directory ?? '.')
    if (project !== directory.work && !project.startsWith(`${directory.work}/`))
      throw new WorkerOptionError(`--directory ${options.directory} is outside of the source; name a directory in ${source}`)
    if (!existsSync(project)) throw new WorkerOptionError(`the source has no directory ${options.directory}`)
    const environment = selectEngineEnvironment(env, options.engineEnvironment)
    let installed: InstalledDependencies | undefined
    const context: EngineContext = {
      spec: run.spec.stack,
      stack: { namespace: run.metadata.namespace ?? 'default', name: run.spec.stackRef.name, uid: run.metadata.uid },
      ...{ epoch: 0, runName: run.metadata.name, isDestroy: false, directory: project, sourceDigest: '', sourceRoot: directory.work },
      ...{ scratch: directory.scratch, inputs: directory.inputs, private: directory.private, files: directory.files },
      ...{ statePath: undefined, pulumiState: unavailable<EngineContext['pulumiState']>() },
      ...{ env: environment.env, credentialNames: environment.selected, workerEnvNames: Object.keys(environment.env) },
      ...{ variables: {}, sensitiveNames: [], signal, log, progress: () => {}, client: unavailable<Client>() },
      run: createProcessRunner({ runUid: run.metadata.uid, ...directory, wrapCommand: isolation.wrapCommand }),
      ...{ cacheDir: runCacheDir(run, cacheDir), contentStore, providerUsage: new ProviderUsage() },
      dependencies: createDependencyHost(run, isolation, { cacheDir, dependencyCacheBytes: sizes.dependencyCacheBytes }, found => {
        installed = found
      }),
      readStackOutputs: async () => undefined,
      pendingOperations: () => {},
      mayWrite: false,
      showProgram: program => isolation.addProgram(program),
      atEnd: release => void releases.push(release),
      inventory: unavailable<EngineContext['inventory']>(),
    }
    const engine = options.engine ?? (await engineOf(project, env))
    const { warm } = engine === undefined ? {} : await loadEngine(engine)
    if (warm) await warm(context)
    else await installDependencies(context, { directory: project })
    return { engine, installed }
  } finally {
    await killRunProcesses(run.metadata.uid)
    for (const release of releases.reverse()) await release()
    await directory.remove()
    await removeTree(own)
  }
}

/** Of commands that were killed (invariant 10). */
async function removeAbandoned(runsDir: string): Promise<void> {
  for (const name of await readdir(runsDir)) {
    const stats = await stat(join(runsDir, name)).catch(ifMissing(undefined))
    if (stats && isAbandoned(name, stats.mtimeMs)) await removeTree(join(runsDir, name))
  }
}

/** The engine of a project by its files; undefined: its packages only. */
async function engineOf(project: string, env: WarmCacheOptions['env']): Promise<EngineName | undefined> {
  const names = await readdir(project)
  if (names.some(name => /^Pulumi\.(yaml|yml|json)$/.test(name))) return 'pulumi'
  if (names.some(name => name.endsWith('.tofu'))) return 'opentofu'
  if (!names.some(name => /\.tf(\.json)?$/.test(name))) return undefined
  const found = await detectEngines(env)
  return found.opentofu?.found ? 'opentofu' : 'terraform'
}

/** A Run as the dispatcher would assign it, of no Stack. */
function runOf({ domain, source, engine }: WarmCacheOptions): Run {
  const [, isProcess, kind, owner] = /^(process-)?(namespace|tenant)-([A-Za-z0-9][\w.-]*)$/.exec(domain) ?? []
  if (owner === undefined) {
    throw new WorkerOptionError(
      `--domain must be namespace-NAME or tenant-UID, with "process-" before it for Runs without a sandbox, got ${JSON.stringify(domain)}`,
    )
  }
  const isolation = isProcess ? ({ level: 'Process' } as const) : ({ level: 'Sandbox', network: 'Private' } as const)
  const uid = globalThis.crypto.randomUUID()
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: { name: `cache-warm-${uid.slice(0, 8)}`, namespace: kind === 'namespace' ? owner : 'cache-warm', uid },
    spec: {
      ...{ type: 'Plan', epoch: 0, stackRef: { name: 'cache-warm', uid, generation: 1 } },
      stack: { engine: engine ?? 'command', source: { path: { path: source } }, state: 'External', isolation },
      ...(kind === 'tenant' && { tenant: { name: owner, uid: owner } }),
    },
  } as Run
}

/** What only a Run of a Stack has. */
const unavailable = <T extends object>(): T =>
  new Proxy({} as T, {
    get(_, name) {
      throw new Error(`bug: ${String(name)} was used while a cache is warmed`)
    },
  })
