import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type RecordingHeader, type RecordingLine, requireKnownCli } from './recording.ts'

/** A command of the CLI that a Run has executed, with its conversation. */
export type RecordedCommand = {
  readonly kind: 'command'
  readonly args: readonly string[]
  /** Of `PULUMI_ACCESS_TOKEN`. */
  readonly accessToken: string
  /** Content of `--config-file`. */
  readonly config: string
  /** Content of `--plan`. */
  readonly plan?: string
  /** What the command wrote to `--save-plan`. */
  readonly savedPlan?: string
  /** null: it was killed with SIGKILL. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  readonly lines: readonly RecordingLine[]
}

export type CommandRecordingHeader = Pick<
  RecordingHeader,
  'kind' | 'format' | 'scenario' | 'cliVersion' | 'cliSha256' | 'platform' | 'recordedAt'
>

export type CommandRecording = { readonly header: CommandRecordingHeader; readonly commands: readonly RecordedCommand[] }

/** JSON lines, compressed with zstd. */
export function encodeCommands({ header, commands }: CommandRecording): Buffer {
  const text = [header, ...commands].map(line => `${JSON.stringify(line)}\n`).join('')
  return zstdCompressSync(text, { params: { 100: 19 } })
}

/** @throws {Error} if the content is not that of a recording of a known CLI. */
export function decodeCommands(bytes: Uint8Array): CommandRecording {
  const lines = zstdDecompressSync(bytes).toString().split('\n')
  const [header, ...commands] = lines.filter(line => line !== '').map(line => JSON.parse(line))
  requireKnownCli(header)
  return { header, commands }
}

/** The value of `--name=value`. */
export const optionOf = (args: readonly string[], name: string): string | undefined =>
  args.find(arg => arg.startsWith(`--${name}=`))?.slice(name.length + 3)

/** Arguments without the paths and the stack, which differ between Runs. */
export const comparableArguments = (args: readonly string[]): string[] =>
  args.map(arg => /^--(save-plan|plan|config-file|stack)=/.exec(arg)?.[0] ?? arg)

/** At a request of a command something happens, in a recording and in a replay: the CLI is killed after its answer, or the request waits. */
export type CommandControl = {
  /** The command. */
  readonly command: string
  /** Source of a regular expression that the unpacked body of the request matches. */
  readonly body: string
  readonly action: 'kill' | 'wait'
  /** `wait`: it is created when the request is reached, and the request continues when `proceed` exists. */
  readonly reached?: string
  readonly proceed?: string
}
