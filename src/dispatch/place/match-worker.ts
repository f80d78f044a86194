import type { Worker } from '../../api/index.ts'
import { type Needs, versionMatches } from '../queue/index.ts'

/**
 * Why the Worker will not do for the needs, however idle it is; undefined when it will. A Worker that does not say which
 * engines it has is taken to have them, in any version but a required one.
 */
export function mismatch(needs: Needs, { metadata, status }: Worker): string | undefined {
  for (const [key, value] of Object.entries(needs.labels)) {
    const has = metadata.labels?.[key]
    if (has !== value) return `label ${key}=${value}${has === undefined ? '' : `, it has ${key}=${has}`}`
  }
  const { engine, engineVersion } = needs
  const version = status?.engines?.[engine]
  if (status?.engines && version === undefined) return `engine ${engine}`
  if (engineVersion === undefined) return undefined
  if (version === undefined) return `engine ${engine} ${engineVersion}, it does not say which version it has`
  return versionMatches(version, engineVersion) ? undefined : `engine ${engine} ${engineVersion}, it has ${version}`
}
