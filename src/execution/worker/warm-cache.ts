import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { EngineName } from '../../api/index.ts'
import { ifMissing } from '../../kubernetes/util/index.ts'
import { type InstalledDependencies, installDependencies } from '../dependencies/index.ts'
import { detectEngines, loadEngine, ProviderUsage, type WarmContext } from '../engine/index.ts'
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
import { trustDomainOf } from './run/trust-domain.ts'
import { runOfSource, runOfStack, type WarmSource, type WarmStack } from './warm-run.ts'
import { prepareWorkerDirectories } from './worker-directories.ts'
import { WorkerOptionError } from './worker-option-error.ts'
import { cacheSizes } from './worker-options.ts'

export type WarmCacheOptions = {
  subject: WarmSource | WarmStack
  cacheDir: string
  /** Names and patterns of variables that Runs of the worker get (`spec.engineEnvironment` of the WorkerPool). */
  engineEnvironment: readonly string[]
  /** Directories that the source of a Stack may be read from. */
  allowPaths: readonly string[]
  sandboxBinds: readonly string[]
  env: Readonly<Record<string, string | undefined>>
  signal: AbortSignal
  log(line: string): void
}

/** `installed`: undefined if the project has no packages. */
export type WarmResult = { engine: EngineName | undefined; domain: string; installed: InstalledDependencies | undefined }

/**
 * Puts what Runs need into the stores of this host, as the first Run would: packages, providers, plugins. For a source it has neither a Stack nor
 * a server, so what depends on values of a Stack (`spec.env`, Secrets) is not what its Runs look for.
 * @throws {WorkerOptionError} {DependencyError} {EngineError} {SourceError} {InputError}
 */
export async function warmCache(options: WarmCacheOptions): Promise<WarmResult> {
  const { subject, cacheDir, env, log, signal } = options
  const sizes = cacheSizes(env)
  const warming = 'stack' in subject ? runOfStack(subject) : runOfSource(subject)
  const { run, credentials } = warming
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
    const allowPaths = 'stack' in subject ? options.allowPaths : [subject.source]
    const sources = { allowPaths, signal, cacheDir, ...(credentials && { credentials }) }
    const { source } = run.spec.stack
    const fetched = await fetchSource(source, await resolveRevision(source, sources), directory.work, sources)
    const project = 'stack' in subject ? fetched.directory : projectOf(directory.work, subject)
    const environment = selectEngineEnvironment(env, options.engineEnvironment)
    const isOfStack = (name: string) => warming.env[name] !== undefined
    let installed: InstalledDependencies | undefined
    const context: WarmContext = {
      spec: run.spec.stack,
      stack: { namespace: run.metadata.namespace ?? 'default', name: run.spec.stackRef.name, uid: run.metadata.uid },
      ...{ runName: run.metadata.name, isDestroy: false, directory: project, sourceRoot: directory.work },
      ...{ scratch: directory.scratch, inputs: directory.inputs, private: directory.private, files: directory.files },
      env: { ...environment.env, ...warming.env },
      credentialNames: [...environment.selected.filter(name => !isOfStack(name)), ...warming.credentialNames],
      workerEnvNames: Object.keys(environment.env).filter(name => !isOfStack(name)),
      ...{ variables: {}, sensitiveNames: [], signal, log },
      run: createProcessRunner({ runUid: run.metadata.uid, ...directory, wrapCommand: isolation.wrapCommand }),
      ...{ cacheDir: runCacheDir(run, cacheDir), contentStore, providerUsage: new ProviderUsage() },
      dependencies: createDependencyHost(run, isolation, { cacheDir, dependencyCacheBytes: sizes.dependencyCacheBytes }, found => {
        installed = found
      }),
      showProgram: program => isolation.addProgram(program),
      atEnd: release => void releases.push(release),
    }
    const engine = 'stack' in subject ? run.spec.stack.engine : (subject.engine ?? (await engineOf(project, env)))
    const { warm } = engine === undefined ? {} : await loadEngine(engine)
    if (warm) await warm(context)
    else if (!('stack' in subject) || run.spec.stack.command?.installDependencies)
      await installDependencies(context, { directory: project, installEnvironment: run.spec.stack.command?.installEnvironment ?? [] })
    return { engine, domain: trustDomainOf(run), installed }
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

/** @throws {WorkerOptionError} if it is none in the source. */
function projectOf(work: string, { source, directory = '.' }: WarmSource): string {
  const project = resolve(work, directory)
  if (project !== work && !project.startsWith(`${work}/`))
    throw new WorkerOptionError(`--directory ${directory} is outside of the source; name a directory in ${source}`)
  if (!existsSync(project)) throw new WorkerOptionError(`the source has no directory ${directory}`)
  return project
}
