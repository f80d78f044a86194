import type { StackSource } from '../../api/index.ts'

export type GitSource = NonNullable<StackSource['git']>

/** Credentials for a git repository, from a Secret. Each one is used only over its own transport. */
export type GitCredentials = {
  /** For https. */
  username?: string
  /** For https: a password or an access token. */
  password?: string
  /** For ssh: a private key in OpenSSH or PEM form. */
  sshPrivateKey?: string
  /** For ssh: lines of a known_hosts file. Without it the host's key is trusted on first use. */
  knownHosts?: string
}

export type SourceOptions = {
  /** Absolute directories. Path sources and file:// repositories must be in one of them after resolving symlinks. */
  allowPaths: readonly string[]
  credentials?: GitCredentials
  signal: AbortSignal
  /** Caches git repositories between Runs; shared by all processes of the machine. */
  cacheDir: string
  /** Size that the cache of git repositories is reduced to, except for what is in use. Default: {@link defaultGitCacheBytes}. */
  cacheBytes?: number | undefined
  /** Total size of the files of a git source. Default: {@link maxSourceBytes}. */
  maxBytes?: number
}

/** 10 GiB. */
export const defaultGitCacheBytes = 10 * 1024 ** 3
/** Total size of the files of a source: 1 GiB. */
export const maxSourceBytes = 1024 ** 3
export const maxSourceFiles = 100_000
