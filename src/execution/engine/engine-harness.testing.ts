import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Json } from '../../kubernetes/object/index.ts'
import { RootDirectory } from '../../kubernetes/util/index.ts'
import { ContentStore, createProcessRunner, signalGroup } from '../workspace/index.ts'
import type { EngineContext } from './engine.ts'
import { interruptTargetOf } from './engine-registry.ts'
import { ProviderUsage } from './provider-usage.ts'

/** For tests of engines: a context on a real directory. What the engine reports is recorded in arrays. */
export type EngineHarness = {
  context: EngineContext
  root: string
  log: string[]
  progress: { done: number; total: number; current?: string }[]
  abort: AbortController
  /** The record that an engine stores per Stack; shared by the Runs of one harness. */
  inventory: { value: Json | undefined }
  write(files: Record<string, string>): Promise<void>
  /** The context of the next Run: a new directory with the same files and the same inventory. */
  nextRun(overrides?: Partial<EngineContext>): Promise<EngineContext>
}

const unreachable = new Proxy({} as Client, {
  get: (_, name) => {
    throw new Error(`this test has no API server, but client.${String(name)} was used`)
  },
})

/** Creates the directories of a Run as the worker does; they are removed when the test ends. */
export async function createEngineHarness(
  t: TestContext,
  files: Record<string, string>,
  overrides: Partial<EngineContext> = {},
): Promise<EngineHarness> {
  const root = await mkdtemp(join(tmpdir(), 'oarlock-engine-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  const abort = new AbortController()
  const harness: EngineHarness = {
    root,
    log: [],
    progress: [],
    abort,
    inventory: { value: undefined },
    context: undefined as unknown as EngineContext,
    async write(more) {
      Object.assign(files, more)
      await writeFiles(harness.context.directory, more)
    },
    async nextRun(more = {}) {
      runs++
      const run = join(root, `run-${runs}`)
      const context: EngineContext = {
        spec: { engine: 'command' },
        stack: { namespace: 'default', name: 'app', uid: 'uid-1' },
        epoch: runs,
        runName: `app-uid-1-${runs}`,
        isDestroy: false,
        mayWrite: true,
        pendingOperations: () => {},
        directory: join(run, 'work'),
        sourceDigest: 'sha256:source',
        sourceRoot: join(run, 'work'),
        scratch: join(run, 'scratch'),
        inputs: join(run, 'inputs'),
        private: join(run, 'private'),
        files: new RootDirectory(run),
        statePath: join(run, 'state', 'terraform.tfstate'),
        pulumiState: unreachable as unknown as EngineContext['pulumiState'],
        env: {},
        credentialNames: [],
        workerEnvNames: [],
        variables: {},
        sensitiveNames: [],
        run: createProcessRunner({
          ...{ runUid: `run-${process.pid}-${runs}`, home: run, tmp: run },
          interrupt: group => void signalGroup(group, 'SIGINT', interruptTargetOf(context.spec.engine)),
        }),
        signal: abort.signal,
        log: line => void harness.log.push(line),
        progress: step => void harness.progress.push(step),
        client: unreachable,
        secrets: {},
        cacheDir: join(root, 'cache'),
        contentStore: new ContentStore({ directory: join(root, 'cache', 'content'), domain: 'shared' }),
        providerUsage: new ProviderUsage(),
        dependencies: {
          store: { directory: join(root, 'cache', 'dependencies'), domain: 'shared' },
          isolation: { canMount: async () => false, mount: () => {}, markSourceChanged: () => {} },
          mayMoveFiles: false,
          endPrograms: async () => {},
        },
        readStackOutputs: async () => undefined,
        showProgram: () => {},
        atEnd: release => t.after(release),
        inventory: {
          read: async () => structuredClone(harness.inventory.value),
          write: async value => {
            harness.inventory.value = structuredClone(value)
          },
        },
        ...overrides,
        ...more,
      }
      for (const directory of [context.scratch, context.inputs, context.private, join(run, 'state')])
        await mkdir(directory, { recursive: true })
      await writeFiles(context.directory, files)
      harness.context = context
      return context
    },
  }
  let runs = 0
  await harness.nextRun()
  return harness
}

async function writeFiles(directory: string, files: Record<string, string>): Promise<void> {
  await mkdir(directory, { recursive: true })
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
}

/** The environment in which tests look for engines; includes the OpenTofu that `scripts/build-tofu.sh` builds. */
export function engineTestEnv(): Record<string, string | undefined> {
  const tofu = join(
    process.env.OARLOCK_BUILD_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock'),
    'bin',
    'tofu',
  )
  return {
    ...process.env,
    ...(process.env.OARLOCK_TOFU === undefined && existsSync(tofu) && { OARLOCK_TOFU: tofu }),
  }
}
