import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** The `config` of an image: https://github.com/opencontainers/image-spec/blob/v1.1.0/config.md */
export type ImageConfig = {
  readonly Env?: readonly string[]
  readonly Entrypoint?: readonly string[]
  readonly Cmd?: readonly string[]
  readonly User?: string
  readonly WorkingDir?: string
  readonly ExposedPorts?: Readonly<Record<string, object>>
  readonly Labels?: Readonly<Record<string, string>>
}

export type Layer = {
  /** What is in it, for `docker history`. */
  readonly description: string
  /** Path of a directory, whose content becomes the root directory of the layer. */
  readonly directory: string
}

export type ArchiveOptions = {
  /** With tag, such as `ghcr.io/example/oarlock:0.1.0`. */
  readonly name: string
  readonly layers: readonly Layer[]
  readonly config: ImageConfig
  /** `amd64` or `arm64`. */
  readonly architecture: string
  /** Time of all files and of the image, in seconds since 1970. */
  readonly createdAtSeconds: number
  /** Path of the archive to write. */
  readonly output: string
  /** Directory with compressed layers by their digest: most layers are those of the last build, and compressing them takes most of its time. */
  readonly layerCache?: string
}

type Blob = { digest: string; size: number }
/** In the cache: those of a few images. */
const keptLayers = 16

/**
 * Writes an image as an OCI layout in a tar file, which `ctr images import`, `podman load`, `docker load` (from 25) and `skopeo copy oci-archive:` read.
 * The same input gives the same bytes: names are sorted, owners are root, times are `createdAtSeconds`.
 * @returns the digest of the manifest, by which a registry knows the image.
 */
export async function writeOciArchive(options: ArchiveOptions): Promise<{ digest: string; sizeBytes: number }> {
  const { name, layers, config, architecture, createdAtSeconds, output, layerCache } = options
  const work = mkdtempSync(join(tmpdir(), 'oarlock-image-'))
  const layout = join(work, 'layout')
  const blobs = join(layout, 'blobs', 'sha256')
  mkdirSync(blobs, { recursive: true })
  try {
    const created = new Date(createdAtSeconds * 1_000).toISOString()
    const built: { layer: Layer; diffId: string; blob: Blob }[] = []
    for (const layer of layers) {
      const tarFile = join(work, 'layer.tar')
      tar(['-cf', tarFile, '-C', layer.directory, '.'], createdAtSeconds)
      const hex = await digestOf(tarFile)
      compress(tarFile, layerCache && join(layerCache, `${hex}.tar.gz`))
      built.push({ layer, diffId: `sha256:${hex}`, blob: await addFile(blobs, `${tarFile}.gz`) })
    }
    const configBlob = addJson(blobs, {
      created,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: built.map(({ diffId }) => diffId) },
      history: built.map(({ layer }) => ({ created, created_by: layer.description })),
    })
    const manifest = addJson(blobs, {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...configBlob },
      layers: built.map(({ blob }) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', ...blob })),
    })
    writeJson(join(layout, 'oci-layout'), { imageLayoutVersion: '1.0.0' })
    writeJson(join(layout, 'index.json'), {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [
        {
          mediaType: 'application/vnd.oci.image.manifest.v1+json',
          ...manifest,
          platform: { os: 'linux', architecture },
          annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1) },
        },
      ],
    })
    // Blobs are written first under another name, so that an interrupted build leaves no archive.
    tar(['-cf', `${output}.partial`, '-C', layout, '.'], createdAtSeconds)
    renameSync(`${output}.partial`, output)
    return { digest: manifest.digest, sizeBytes: statSync(output).size }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function tar(args: readonly string[], mtimeSeconds: number): void {
  const reproducible = ['--sort=name', '--format=gnu', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${mtimeSeconds}`]
  execFileSync('tar', [...reproducible, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Writes `FILE.gz`. @param cached path of its copy in the cache. */
function compress(file: string, cached: string | undefined): void {
  const output = `${file}.gz`
  if (cached && existsSync(cached)) {
    copyFileSync(cached, output)
    utimesSync(cached, new Date(), new Date())
    return
  }
  execFileSync('gzip', ['-n', '-f', file])
  if (!cached) return
  const directory = dirname(cached)
  mkdirSync(directory, { recursive: true })
  copyFileSync(output, `${cached}.${process.pid}`)
  renameSync(`${cached}.${process.pid}`, cached)
  removeOldest(directory, '.tar.gz', keptLayers)
}

/** Removes all but the `kept` files that were used last. Other processes may do the same. */
export function removeOldest(directory: string, suffix: string, kept: number): void {
  const files = readdirSync(directory).filter(name => name.endsWith(suffix))
  const usedMs = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const newestFirst = files.map(name => join(directory, name)).sort((a, b) => usedMs(b) - usedMs(a))
  for (const old of newestFirst.slice(kept)) rmSync(old, { force: true })
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

async function addFile(blobs: string, path: string): Promise<Blob> {
  const hex = await digestOf(path)
  const { size } = statSync(path)
  renameSync(path, join(blobs, hex))
  return { digest: `sha256:${hex}`, size }
}

function addJson(blobs: string, value: unknown): Blob {
  const text = JSON.stringify(value)
  const hex = createHash('sha256').update(text).digest('hex')
  writeFileSync(join(blobs, hex), text)
  return { digest: `sha256:${hex}`, size: Buffer.byteLength(text) }
}

const writeJson = (path: string, value: unknown): void => writeFileSync(path, JSON.stringify(value))
