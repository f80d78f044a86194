import { type Fields, fieldsOf, itemsOf, textOf } from '../type-rules/index.ts'

type ProjectedPath = { path: string; source: string }

/** Warns about paths of a volume that overwrite each other. */
export function overlapWarnings(volume: Fields): string[] {
  const { name, configMap, secret, downwardAPI, projected } = volume
  const overlapsIn = (source: string, paths: ProjectedPath[]) =>
    overlaps(paths).map(overlap => `volume ${JSON.stringify(name)} (${source}): overlapping paths: ${overlap}`)
  const warnings: string[] = []
  if (configMap !== undefined)
    warnings.push(...overlapsIn(`ConfigMap ${JSON.stringify(textOf(fieldsOf(configMap).name))}`, itemPaths(configMap, '')))
  if (secret !== undefined)
    warnings.push(...overlapsIn(`Secret ${JSON.stringify(textOf(fieldsOf(secret).secretName))}`, itemPaths(secret, '')))
  if (downwardAPI !== undefined) warnings.push(...overlapsIn('DownwardAPI', itemPaths(downwardAPI, '')))
  if (projected !== undefined) {
    const sources = itemsOf(fieldsOf(projected).sources)
    for (const source of sources) {
      if (Object.keys(source).length === 0) warnings.push(`volume ${JSON.stringify(name)} (Projected) has no sources provided`)
    }
    warnings.push(...overlapsIn('Projected', sources.flatMap(sourcePaths)))
  }
  return warnings
}

function itemPaths(volumeSource: unknown, source: string): ProjectedPath[] {
  return itemsOf(fieldsOf(volumeSource).items).map(({ path }) => ({ path: textOf(path).replace(/\/+$/, ''), source }))
}

function sourcePaths({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate }: Fields): ProjectedPath[] {
  if (configMap !== undefined) return itemPaths(configMap, `ConfigMap ${JSON.stringify(textOf(fieldsOf(configMap).name))}`)
  if (secret !== undefined) return itemPaths(secret, `Secret ${JSON.stringify(textOf(fieldsOf(secret).name))}`)
  if (downwardAPI !== undefined) return itemPaths(downwardAPI, 'DownwardAPI')
  const pathsFrom = (path: unknown, source: string): ProjectedPath[] =>
    textOf(path) === '' ? [] : [{ path: textOf(path).replace(/\/+$/, ''), source }]
  if (serviceAccountToken !== undefined) return pathsFrom(fieldsOf(serviceAccountToken).path, 'ServiceAccountToken')
  if (clusterTrustBundle !== undefined) {
    const { path, name, signerName } = fieldsOf(clusterTrustBundle)
    return pathsFrom(path, `ClusterTrustBundle ${JSON.stringify(name ?? signerName)}`)
  }
  const { certificateChainPath, keyPath, credentialBundlePath } = fieldsOf(podCertificate)
  return [
    ...pathsFrom(certificateChainPath, 'PodCertificate chain'),
    ...pathsFrom(keyPath, 'PodCertificate key'),
    ...pathsFrom(credentialBundlePath, 'PodCertificate credential bundle'),
  ]
}

function overlaps(paths: readonly ProjectedPath[]): string[] {
  return paths.flatMap((one, index) =>
    paths
      .slice(0, index)
      .filter(other => isBelow(one.path, other.path) || isBelow(other.path, one.path))
      .map(other => `${formatPath(one)} with ${formatPath(other)}`),
  )
}

const isBelow = (path: string, above: string) => path !== '' && above !== '' && `${path}/`.startsWith(`${above}/`)
const formatPath = ({ path, source }: ProjectedPath) => JSON.stringify(path) + (source === '' ? '' : ` (${source})`)
