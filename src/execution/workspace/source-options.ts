import type { StackSource } from '../../api/index.ts'

export type GitSource = NonNullable<StackSource['git']>

/** What a Secret holds for a git repository. Both parts are used only over the transport they are for. */
export type GitCredentials = {
  /** For https. */
  username?: string
  /** For https: a password or an access token. */
  password?: string
  /** For ssh: a private key in OpenSSH or PEM form. */
  sshPrivateKey?: string
  /** For ssh: lines as in known_hosts. Without it the host's key is trusted on first use. */
  knownHosts?: string
}

export type SourceOptions = {
  /** Absolute directories; path sources and file:// repositories must lie in one of them, symlinks resolved. */
  allowPaths: readonly string[]
  credentials?: GitCredentials
  signal: AbortSignal
  /** Where git repositories are kept between Runs; shared by all processes of the machine. */
  cacheDir: string
}

/** All files of a source together: 1 GiB. */
export const maxSourceBytes = 1024 ** 3
export const maxSourceFiles = 100_000
