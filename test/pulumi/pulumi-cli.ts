import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, createReadStream, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type CliResult = { readonly exitCode: number; readonly stdout: string; readonly stderr: string }

/** The `pulumi` of `PULUMI_BIN`; its language hosts and providers stand next to it. */
export type PulumiCli = {
  readonly binary: string
  readonly version: string
  readonly sha256: string
}

/** @throws {Error} if the binary does not run. */
export async function openPulumiCli(binary: string): Promise<PulumiCli> {
  const { stdout, exitCode } = await runProgram(binary, ['version'], { env: environment(binary, {}) })
  const version = /^v?(\S+)$/.exec(stdout.trim())?.[1]
  if (exitCode !== 0 || version === undefined) throw new Error(`${binary} version: exit code ${exitCode}`)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(binary)) hash.update(chunk)
  return { binary, version, sha256: hash.digest('hex') }
}

/** A private copy of a program, and a home for the CLI. */
export type CliWorkspace = {
  readonly directory: string
  /** Runs a command. `kill` ends the CLI and its providers with SIGKILL. */
  run(args: readonly string[], at: { url: string; accessToken: string }): { readonly result: Promise<CliResult>; kill(): void }
}

/** `nodeModules`: linked into the program, for those of Node. */
export function createCliWorkspace(cli: PulumiCli, program: string, nodeModules: string | undefined): CliWorkspace {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-pulumi-'))
  const directory = join(root, 'program')
  cpSync(join(import.meta.dirname, 'programs', program), directory, { recursive: true })
  if (nodeModules !== undefined) symlinkSync(nodeModules, join(directory, 'node_modules'))
  return {
    directory,
    run: (args, { url, accessToken }) => {
      const env = environment(cli.binary, { PULUMI_HOME: join(root, 'home'), PULUMI_BACKEND_URL: url, PULUMI_ACCESS_TOKEN: accessToken })
      const child = start(cli.binary, [...args, '--non-interactive', '--color', 'never'], { cwd: directory, env })
      return {
        result: collect(child),
        kill: () => {
          // The providers are in its process group.
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
        },
      }
    },
  }
}

const environment = (binary: string, values: Record<string, string>): NodeJS.ProcessEnv => ({
  ...{ HOME: tmpdir(), LANG: 'C.UTF-8', PATH: `${dirname(binary)}:${dirname(process.execPath)}:/usr/bin:/bin` },
  ...{ PULUMI_SKIP_UPDATE_CHECK: 'true', PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: 'true', ...values },
})

type StartOptions = { readonly cwd?: string; readonly env: NodeJS.ProcessEnv }

const start = (binary: string, args: readonly string[], options: StartOptions) =>
  spawn(binary, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })

const runProgram = async (binary: string, args: readonly string[], options: StartOptions): Promise<CliResult> =>
  await collect(start(binary, args, options))

async function collect(child: ReturnType<typeof start>): Promise<CliResult> {
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve(code ?? -1))
  })
  return { exitCode, stdout, stderr }
}
