import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

const buildCache = process.env.OARLOCK_BUILD_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock')
/** As Go names it: the engine's, where it is that of this process. */
export const platform = `${process.platform}_${process.arch === 'x64' ? 'amd64' : process.arch}`
export const timeVersion = '0.14.2'
export const registries = ['registry.terraform.io', 'registry.opentofu.org'] as const
const programName = `terraform-provider-time_v${timeVersion}_x5`
const built = join(buildCache, 'mirror', registries[0], 'hashicorp/time', timeVersion, platform, programName)

/** A value for `skip` of a test: false when scripts/build-providers.sh has built the provider, else the reason. */
export const skipWithoutTimeProvider = existsSync(built) ? false : `${built} is missing: run scripts/build-providers.sh`

/** A provider of namespace `hashicorp`. The file name of its program ends in `_x5`. */
export type TestProvider = { type: string; version: string; program: Buffer }

/** One that scripts/build-providers.sh builds. Empty if it is missing: the tests that use it are skipped. */
export function builtProvider(type: 'time' | 'local'): TestProvider {
  const version = type === 'time' ? timeVersion : '1.4.0'
  const name = `terraform-provider-${type}_v${version}_x5`
  const path = join(buildCache, 'mirror', registries[0], 'hashicorp', type, version, platform, name)
  return { type, version, program: existsSync(path) ? readFileSync(path) : Buffer.alloc(0) }
}

/** The package of a provider as a registry has it. */
export const packageOf = ({ type, version, program }: TestProvider): Buffer => zipOf(`terraform-provider-${type}_v${version}_x5`, program)

/** The `h1:` checksum of the package of a provider. */
export function packageChecksum({ type, version, program }: TestProvider): string {
  const digest = createHash('sha256').update(program).digest('hex')
  return `h1:${createHash('sha256').update(`${digest}  terraform-provider-${type}_v${version}_x5\n`).digest('base64')}`
}

/** Empty if it is missing: the tests that use it are skipped. */
export const timeProvider = (): Buffer => builtProvider('time').program
/** A program in place of a provider, whose first line of output the engine repeats in its error message. */
export const maliciousOutput = 'executed-the-provider-of-another-stack'
export const maliciousProvider = (): Buffer => Buffer.from(`#!/bin/sh\necho ${maliciousOutput}\n`)

/**
 * Writes a mirror with `program` as provider hashicorp/time, in archives: the engine unpacks it into the plugin cache as if it had downloaded
 * it, whereas it links to unpacked packages of a mirror. Returns the CLI configuration that selects it.
 */
export function writeMirror(directory: string, program: Buffer, version = timeVersion): string {
  for (const registry of registries) {
    const parent = join(directory, registry, 'hashicorp/time')
    mkdirSync(parent, { recursive: true })
    writeFileSync(join(parent, `terraform-provider-time_${version}_${platform}.zip`), zipOf(programName, program))
  }
  return `provider_installation {\n  filesystem_mirror { path = ${JSON.stringify(directory)} }\n}\n`
}

/** The `h1:` checksum of the package. */
export const checksumOf = (program: Buffer): string => packageChecksum({ type: 'time', version: timeVersion, program })

export const zipChecksumOf = (program: Buffer): string => `zh:${createHash('sha256').update(zipOf(programName, program)).digest('hex')}`

/** A dependency lock file for the provider of both registries. */
export const lockFile = (hashes: readonly string[], [registry]: readonly string[] = registries, version = timeVersion): string =>
  `provider "${registry}/hashicorp/time" {\n  version = "${version}"\n  hashes = [\n${hashes.map(hash => `    "${hash}",\n`).join('')}  ]\n}\n`

/** A dependency lock file with the packages of these providers. */
export const lockFileOf = (providers: readonly TestProvider[], registry: string): string =>
  providers
    .map(
      each =>
        `provider "${registry}/hashicorp/${each.type}" {\n  version = "${each.version}"\n  hashes = [\n    "${packageChecksum(each)}",\n  ]\n}\n`,
    )
    .join('')

export const timeConfiguration =
  'terraform {\n  required_providers {\n    time = { source = "hashicorp/time" }\n  }\n}\nresource "time_static" "now" {}\n'

/** An archive with one executable file, not compressed. */
function zipOf(name: string, data: Buffer): Buffer {
  const common = Buffer.alloc(26)
  // Version 2.0, no flags, method 0 (stored), 1980-01-01.
  common.writeUInt16LE(20, 0)
  common.writeUInt16LE(0x21, 8)
  common.writeUInt32LE(crc32(data), 10)
  common.writeUInt32LE(data.length, 14)
  common.writeUInt32LE(data.length, 18)
  common.writeUInt16LE(name.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), data])
  // Made on Unix; then comment, disk, internal attributes, mode 0755 of a regular file, offset.
  const attributes = Buffer.alloc(14)
  attributes.writeUInt32LE(0o100755 * 0x10000, 6)
  const central = Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), common, attributes, Buffer.from(name)])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(local.length, 16)
  return Buffer.concat([local, central, end])
}
