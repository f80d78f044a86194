import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { GitUrl } from './git-url.ts'
import { launchProgram } from './isolation/launcher.ts'
import { createProcessRunner, SpawnError } from './process/index.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import { type GitCredentials, maxSourceBytes } from './source-options.ts'

export type GitResult = { exitCode: number | null; stdout: string[]; stderr: string[] }
/** Runs `git <args>`. Resolves for any exit code. */
export type Git = (args: string[], options?: GitCallOptions) => Promise<GitResult>
export type GitCallOptions = {
  indexFile?: string
  /** Receives the lines of stdout, which are not kept then. False ends git. */
  onLine?(line: string): boolean
}

/** The time limit of one call; the timeout of the Run is usually shorter. */
const callTimeoutMs = 10 * 60_000
const maxOutputLines = 10_000
/** A pack may be larger than the files of the commit: a server that serves no commits by hash sends the history. */
export const maxPackBytes = ({ maxBytes = maxSourceBytes }: { maxBytes?: number }): number => 2 * maxBytes

/**
 * Calls `work` with a git that reads only its own configuration, never prompts, and runs no hooks and no helpers other than https, ssh
 * and file. It gets secrets through the environment and a key file in a private directory that is removed afterwards, never through URLs,
 * arguments or logs (invariant 9).
 */
export async function withIsolatedGit<T>(
  options: { url: GitUrl; credentials?: GitCredentials; signal: AbortSignal; cacheDir: string; maxBytes?: number },
  work: (git: Git) => Promise<T>,
): Promise<T> {
  const { url, credentials, cacheDir } = options
  await mkdir(cacheDir, { recursive: true, mode: 0o700 })
  await removeOrphanedDirectories(cacheDir)
  const directory = await mkdtemp(join(cacheDir, `private-${process.pid}-`))
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(callTimeoutMs)])
  try {
    const env = { ...(await privateFiles(directory, url, credentials)), ...fixedEnvironment }
    // A UID of its own: stopping one call must not stop other calls of this process.
    const run = createProcessRunner({
      runUid: `git-${basename(directory)}`,
      home: directory,
      tmp: directory,
      // A pack is written as it arrives: the kernel ends git when it exceeds the limit. In blocks of 512 bytes (POSIX).
      wrapCommand: command => ({
        ...launchProgram([`ulimit -f ${Math.ceil(maxPackBytes(options) / 512)}`], command),
        descriptors: [],
        release: () => {},
      }),
    })
    return await work(async (args, { indexFile, onLine } = {}) => {
      const enough = new AbortController()
      const stdout: string[] = []
      const stderr: string[] = []
      const keep = (lines: string[]) => (line: string) => {
        if (lines.length < maxOutputLines) lines.push(maskPassword(line, credentials))
      }
      try {
        const { exitCode } = await run({
          command: 'git',
          args: [...fixedArguments, ...args],
          cwd: directory,
          env: indexFile ? { ...env, GIT_INDEX_FILE: indexFile } : env,
          signal: onLine ? AbortSignal.any([signal, enough.signal]) : signal,
          onStdoutLine: onLine ? line => onLine(line) || enough.abort() : keep(stdout),
          onStderrLine: keep(stderr),
          escalation: { graceMs: 2_000, killMs: 2_000 },
        })
        options.signal.throwIfAborted()
        return { exitCode, stdout, stderr }
      } catch (error) {
        if (!(error instanceof SpawnError)) throw error
        const message = `git could not be started on this worker; install git and make sure that it is in PATH: ${error.message}`
        throw new SourceError('SourceUnavailable', 'spec.source.git', message, { cause: error })
      }
    })
  } finally {
    await removeTree(directory)
  }
}

const fixedArguments = [
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'protocol.ext.allow=never',
  '-c',
  'protocol.allow=never',
  '-c',
  'protocol.https.allow=always',
  '-c',
  'protocol.ssh.allow=always',
  '-c',
  'protocol.file.allow=always',
  '-c',
  'credential.helper=',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'core.symlinks=true',
  '-c',
  'gc.auto=0',
  '-c',
  'maintenance.auto=false',
  '-c',
  'submodule.recurse=false',
  '-c',
  'advice.detachedHead=false',
]

const fixedEnvironment = {
  GIT_ALLOW_PROTOCOL: 'https:ssh:file',
  GIT_TERMINAL_PROMPT: '0',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_LFS_SKIP_SMUDGE: '1',
  LC_ALL: 'C',
}

async function privateFiles(directory: string, url: GitUrl, credentials: GitCredentials = {}): Promise<Record<string, string>> {
  const config = join(directory, 'gitconfig')
  // A repository on disk may belong to another user: --allow-path decides whether it may be read. Git passes this setting on to
  // upload-pack only from a file, not from its arguments.
  await writeFile(config, '[safe]\n\tdirectory = *\n', { mode: 0o600 })
  const env: Record<string, string> = { GIT_CONFIG_GLOBAL: config }
  const proxies = ['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'no_proxy', 'NO_PROXY', 'GIT_SSL_CAINFO', 'SSL_CERT_FILE', 'SSL_CERT_DIR']
  for (const name of proxies) if (process.env[name]) env[name] = process.env[name]
  if (url.kind === 'https' && credentials.password !== undefined) {
    const askpass = join(directory, 'askpass')
    await writeFile(askpass, askpassScript(url.host), { mode: 0o700 })
    env.GIT_ASKPASS = askpass
    env.OARLOCK_GIT_USERNAME = credentials.username ?? 'git'
    env.OARLOCK_GIT_PASSWORD = credentials.password
  }
  if (url.kind === 'ssh') env.GIT_SSH_COMMAND = await sshCommand(directory, credentials)
  return env
}

// Answers only for the host of the URL: a redirect to another host gets no credentials.
function askpassScript(host: string): string {
  return `#!/bin/sh
case "$1" in
"Username for 'https://${host}'"*) printf '%s\\n' "$OARLOCK_GIT_USERNAME" ;;
"Password for 'https://"*"@${host}'"*) printf '%s\\n' "$OARLOCK_GIT_PASSWORD" ;;
*) exit 1 ;;
esac
`
}

async function sshCommand(directory: string, { sshPrivateKey, knownHosts }: GitCredentials): Promise<string> {
  const quoted = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`
  const hosts = join(directory, 'known_hosts')
  await writeFile(hosts, knownHosts ?? '', { mode: 0o600 })
  const parts = ['ssh', '-F', '/dev/null', '-o', 'BatchMode=yes', '-o', `UserKnownHostsFile=${quoted(hosts)}`]
  parts.push('-o', `StrictHostKeyChecking=${knownHosts ? 'yes' : 'accept-new'}`, '-o', 'ConnectTimeout=15')
  if (sshPrivateKey !== undefined) {
    const key = join(directory, 'ssh-privatekey')
    // ssh rejects a key without a final newline.
    await writeFile(key, sshPrivateKey.endsWith('\n') ? sshPrivateKey : `${sshPrivateKey}\n`, { mode: 0o600 })
    parts.push('-i', quoted(key))
  } else parts.push('-o', 'IdentityFile=none')
  // The keys of the worker's user, and of its agent, are not those of the Stack.
  parts.push('-o', 'IdentitiesOnly=yes', '-o', 'IdentityAgent=none')
  return parts.join(' ')
}

/** Git does not print passwords, but a server's message, which git prints, may contain one. */
function maskPassword(line: string, credentials: GitCredentials = {}): string {
  const { password } = credentials
  return password && password.length >= 4 ? line.replaceAll(password, '***') : line
}

/** Removes private directories of processes that were killed: a key must not outlive its use (invariant 9). */
async function removeOrphanedDirectories(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const pid = /^private-(\d+)-/.exec(name)?.[1]
    if (pid && !isAlive(Number(pid))) await removeTree(join(cacheDir, name))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
