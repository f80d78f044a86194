import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { DeploymentError, isEncrypted, type PulumiStateFile, readStateFile, secretsIn } from '../../stores/pulumi/index.ts'
import { defaultStateLimits } from '../../stores/state/index.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'

export type PulumiImport = {
  /** As `pulumi stack export` writes it. */
  readonly content: string
  /** What the Runs need to decrypt its secrets; undefined if they need nothing. */
  readonly secretsHint: string | undefined
}

/**
 * Prepares a state of Pulumi for a Stack.
 * @throws {CliError} for content that is no state of Pulumi, and for secrets that only Pulumi Cloud can decrypt.
 */
export function preparePulumiImport(text: string, from: string): PulumiImport {
  const { state } = parse(text, from)
  const { secrets_providers: provider, ...deployment } = state.deployment
  const hasEncrypted = secretsIn(deployment).some(isEncrypted)
  const isCloud = provider?.type === 'service'
  if (isCloud && hasEncrypted) {
    const hint =
      'export it with "pulumi stack export --show-secrets", or from another Stack with "oarlock state pull --show-secrets": the state store encrypts what it stores'
    throw rejected(`${from} cannot be imported: its secrets are encrypted by Pulumi Cloud, or by Oarlock for another Stack`, hint)
  }
  // The next update encrypts with the keys of the Stack. With a provider its Runs would need what that needs, although it has encrypted nothing.
  const kept = hasEncrypted ? state : { ...state, deployment }
  const secretsHint =
    hasEncrypted && provider
      ? `its secrets are encrypted with ${provider.type}: Runs need what that provider needs, such as PULUMI_CONFIG_PASSPHRASE in spec.env; "pulumi stack export --show-secrets" exports a state that needs nothing`
      : undefined
  return { content: `${JSON.stringify(kept)}\n`, secretsHint }
}

function parse(text: string, from: string): PulumiStateFile {
  if (text.trim() === '') throw rejected(`${from} cannot be imported: there is no state`, howToExport)
  try {
    return readStateFile(text)
  } catch (error) {
    if (!(error instanceof DeploymentError)) throw error
    throw rejected(`${from} cannot be imported: ${error.message}`, howToExport)
  }
}

const howToExport = 'a state of Pulumi is what "pulumi stack export" prints, or a file in .pulumi/stacks of a file or bucket backend'

/**
 * The state in the directory of a file backend: that of `stack` (`PROJECT/STACK`, or `STACK` of a backend without projects), or of its only one.
 * @throws {CliError} without such a stack, without a name if there are several, and if the stack is locked, unless `force`.
 */
export function readPulumiBackend(directory: string, force: boolean, stack?: string): { text: string; file: string } {
  const root = [join(directory, '.pulumi'), directory].find(candidate => existsSync(join(candidate, 'stacks')))
  if (root === undefined) throw usageError(`${directory} has no .pulumi/stacks`, 'name the directory of a file backend, or a file')
  // Stacks of projects are in a directory each, those of older backends are not.
  const files = globSync(['stacks/*.{json,json.gz,json.zst}', 'stacks/*/*.{json,json.gz,json.zst}'], { cwd: root })
    .map(file => join(root, file))
    .filter(file => !file.includes('.json.bak'))
    .sort()
  const nameOf = (file: string) => relative(join(root, 'stacks'), file).replace(/\.json(\.gz|\.zst)?$/, '')
  if (files.length === 0) throw usageError(`${root} has no stacks`, 'check the directory')
  const names = files.slice(0, 10).map(nameOf).join(', ')
  const [file, ...others] = stack === undefined ? files : files.filter(each => nameOf(each) === stack)
  if (file === undefined) throw usageError(`${root} has no stack ${stack}`, `name one of its stacks with --pulumi-stack: ${names}`)
  if (others.length > 0) throw usageError(`${root} has ${files.length} stacks`, `name one of them with --pulumi-stack: ${names}`)
  const name = nameOf(file)
  const locks = globSync([`locks/organization/${name}/*.json`, `locks/${name}/*.json`], { cwd: root })
  if (locks.length > 0 && !force)
    throw rejected(
      `${file} is locked by ${join(root, locks[0] ?? '')}`,
      'wait for the update, or run "pulumi cancel" if it has ended; --force imports it anyway',
    )
  return { text: readPulumiFile(file), file }
}

/** A file of a backend may be compressed. @throws {CliError} */
export function readPulumiFile(file: string): string {
  try {
    const bytes = readFileSync(file === '-' ? 0 : file)
    const limit = { maxOutputLength: defaultStateLimits.maxBytes }
    const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
    const isZstd = bytes.length >= 4 && bytes.readUInt32LE() === 0xfd2fb528
    return (isGzip ? gunzipSync(bytes, limit) : isZstd ? zstdDecompressSync(bytes, limit) : bytes).toString()
  } catch (error) {
    throw usageError(
      `${file} cannot be read: ${(error as Error).message}`,
      'name a file, the directory of a file backend, the URL of a bucket, or - for stdin',
    )
  }
}

const rejected = (message: string, hint: string) => new CliError(message, { exitCode: exitCodes.rejected, hint })
