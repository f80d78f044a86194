/** A process of the pool of `installs.ts`: prepares workspaces, one after another, as a worker does for its Runs. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { installDependencies } from '../src/execution/dependencies/index.ts'
import {
  createProcessRunner,
  createRunDirectory,
  killRunProcesses,
  probeIsolation,
  RunIsolation,
} from '../src/execution/workspace/index.ts'

export type RunRequest = {
  name: string
  runsDir: string
  source: string
  /** Of the store; undefined: the package manager runs in this workspace alone. */
  store: string | undefined
  /** A command that is executed in the workspace afterwards, and timed apart. */
  load: string | undefined
  network: 'Private' | 'Host'
  /** A directory of downloaded packages that workspaces without a store share. */
  npmCache?: string | undefined
}
export type RunAnswer = {
  name: string
  how: string
  attachedAs: string
  /** To copy the source, and to prepare its packages. */
  seconds: number
  /** Of this process, without the programs that it starts. */
  cpuSeconds: number
  loadSeconds: number
  output: string
}

const path = '/usr/local/bin:/usr/bin:/bin'
const releases: (() => Promise<void>)[] = []

async function prepare({ name, runsDir, source, store, load, network, npmCache }: RunRequest): Promise<RunAnswer> {
  const probe = await probeIsolation('Sandbox')
  const startedMs = performance.now()
  const usageBefore = process.cpuUsage()
  if (!probe.available) throw new Error(`this bench needs level Sandbox: ${probe.reason}`)
  const directory = await createRunDirectory(runsDir, name)
  cpSync(source, directory.work, { recursive: true })
  const isolation = new RunIsolation({
    ...{ level: 'Sandbox', network, limits: {}, runUid: name, directory, readable: [], sandbox: probe.sandbox! },
    onExceeded: () => {},
  })
  const run = createProcessRunner({ runUid: name, ...directory, wrapCommand: isolation.wrapCommand })
  const lines: string[] = []
  const signal = new AbortController().signal
  let how = 'Alone'
  let attachedAs = 'Alone'
  const execute = async (script: string) => {
    const { exitCode } = await run({
      ...{
        command: 'sh',
        args: ['-c', script],
        cwd: directory.work,
        env: { PATH: path, ...(npmCache && { npm_config_cache: npmCache }) },
        signal,
      },
      onStdoutLine: line => void lines.push(line),
      onStderrLine: line => void lines.push(line),
    })
    if (exitCode !== 0) throw new Error(`${script} exited with ${exitCode}: ${lines.slice(-10).join('\n')}`)
  }
  if (store === undefined) await execute('npm ci --no-audit --no-fund --no-update-notifier')
  else {
    const installed = await installDependencies(
      {
        runName: name,
        ...{
          sourceRoot: directory.work,
          scratch: directory.scratch,
          files: directory.files,
          env: { PATH: path },
          credentialNames: [],
          workerEnvNames: [],
        },
        ...{ run, signal, log: line => void lines.push(line), atEnd: release => void releases.push(release) },
        dependencies: {
          ...{ store: { directory: store, domain: 'bench' }, isolation, mayMoveFiles: network !== 'Host' },
          endPrograms: async () => void (await killRunProcesses(name)),
        },
      },
      { directory: directory.work },
    )
    how = installed!.source
    attachedAs = installed!.attachedAs
  }
  const seconds = (performance.now() - startedMs) / 1_000
  const { user, system } = process.cpuUsage(usageBefore)
  const loadStartedMs = performance.now()
  if (load !== undefined) await execute(load)
  const loadSeconds = load === undefined ? 0 : (performance.now() - loadStartedMs) / 1_000
  await isolation.close()
  return { name, how, attachedAs, seconds, cpuSeconds: (user + system) / 1e6, loadSeconds, output: join(lines.at(-1) ?? '') }
}

process.on('message', request => {
  prepare(request as RunRequest).then(
    answer => process.send!(answer),
    error => {
      console.error(error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => {
  void Promise.all(releases.map(release => release())).then(() => process.exit(0))
})
