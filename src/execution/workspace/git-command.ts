import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { GitUrl } from './git-url.ts'
import { createProcessRunner, SpawnError } from './process/index.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import type { GitCredentials } from './source-options.ts'

export type GitResult = { exitCode: number | null; stdout: string[]; stderr: string[] }
/** Runs `git <args>`. Never rejects for an exit code. */
export type Git = (args: string[], options?: { indexFile?: string }) => Promise<GitResult>

/** One call of git may take this long; the Run's own timeout is usually shorter. */
const callTimeoutMs = 10 * 60_000
const keptOutputLines = 10_000

/**
 * Calls `work` with a git that reads no configuration but its own, asks nobody, runs no hooks and no helpers but https, ssh and file.
 * Secrets reach it by environment and by one key file in a private directory that is gone afterwards: never by URL, argument or log
 * (invariant 9).
 */
export async function withGit<T>(
  options: { url: GitUrl; credentials?: GitCredentials; signal: AbortSignal; cacheDir: string },
  work: (git: Git) => Promise<T>,
): Promise<T> {
  const { url, credentials, cacheDir } = options
  await mkdir(cacheDir, { recursive: true, mode: 0o700 })
  await removeAbandoned(cacheDir)
  const directory = await mkdtemp(join(cacheDir, `private-${process.pid}-`))
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(callTimeoutMs)])
  try {
    const env = { ...(await privateFiles(directory, url, credentials)), ...fixedEnvironment }
    // A mark of its own: ending one call must not end those of others in this process.
    const run = createProcessRunner({ runUid: `git-${basename(directory)}`, home: directory, tmp: directory })
    return await work(async (args, { indexFile } = {}) => {
      const stdout: string[] = []
      const stderr: string[] = []
      const keep = (lines: string[]) => (line: string) => {
        if (lines.length < keptOutputLines) lines.push(withoutSecrets(line, credentials))
      }
      try {
        const { exitCode } = await run({
          command: 'git',
          args: [...fixedArguments, ...args],
          cwd: directory,
          env: indexFile ? { ...env, GIT_INDEX_FILE: indexFile } : env,
          signal,
          onStdoutLine: keep(stdout),
          onStderrLine: keep(stderr),
          escalation: { graceMs: 2_000, killMs: 2_000 },
        })
        options.signal.throwIfAborted()
        return { exitCode, stdout, stderr }
      } catch (error) {
        if (!(error instanceof SpawnError)) throw error
        const why = `git could not be started on this worker; install git and make sure it is in PATH: ${error.message}`
        throw new SourceError('SourceUnavailable', 'spec.source.git', why, { cause: error })
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
  // A repository on disk may belong to somebody else: that it may be read was decided by --allow-path. Git passes this on to
  // upload-pack only from a file, never from its arguments.
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

// Answers only for the host of the URL: a redirect to another one gets nothing.
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
    // ssh refuses a key without a line end at its end.
    await writeFile(key, sshPrivateKey.endsWith('\n') ? sshPrivateKey : `${sshPrivateKey}\n`, { mode: 0o600 })
    parts.push('-i', quoted(key), '-o', 'IdentitiesOnly=yes')
  }
  return parts.join(' ')
}

/** Git does not print passwords; a server's own words, which git repeats, might. */
function withoutSecrets(line: string, credentials: GitCredentials = {}): string {
  const { password } = credentials
  return password && password.length >= 4 ? line.replaceAll(password, '***') : line
}

/** Removes private directories whose process was killed before it could: a key must not outlive its use (invariant 9). */
async function removeAbandoned(cacheDir: string): Promise<void> {
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

/** Turns git's words into a reason a person can act on. `what` is the thing looked for, as in `branch "main"`. */
export function gitError(result: GitResult, field: string, url: string, what?: string): SourceError {
  const text = result.stderr.join('\n')
  const said = result.stderr
    .filter(line => /^(fatal|error|remote|ssh|git@|Host|Permission)/i.test(line))
    .slice(0, 4)
    .join('; ')
  const shown = said || result.stderr.at(-1) || `git ended with exit code ${result.exitCode}`
  const repository = JSON.stringify(url)
  if (/couldn't find remote ref|not our ref|unadvertised object|does not exist in|bad object|invalid reference/i.test(text) && what) {
    return new SourceError('SourceNotFound', field, `${what} was not found in ${repository}`)
  }
  if (
    /authentication failed|could not read (username|password)|permission denied|access denied|returned error: 40[13]|host key verification failed|terminal prompts disabled/i.test(
      text,
    )
  ) {
    const help =
      'check the Secret named in spec.source.git.secretRef: username and password for https, ssh-privatekey and known_hosts for ssh'
    return new SourceError('SourceAuthFailed', 'spec.source.git', `${repository} refused access: ${shown}; ${help}`)
  }
  if (
    /could not resolve host|connection (refused|timed out|reset)|timed out|network is unreachable|early eof|hung up unexpectedly/i.test(
      text,
    ) &&
    !/not found|does not exist/i.test(text)
  ) {
    return new SourceError('SourceUnavailable', 'spec.source.git.url', `${repository} cannot be reached: ${shown}`)
  }
  if (/not found|does not exist|does not appear to be a git repository|no such file/i.test(text)) {
    return new SourceError('SourceNotFound', 'spec.source.git.url', `${repository} is not a repository that can be read: ${shown}`)
  }
  return new SourceError('SourceUnavailable', 'spec.source.git.url', `${repository}: ${shown}`)
}
