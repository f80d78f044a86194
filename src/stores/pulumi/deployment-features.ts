import type { Deployment, Resource } from './deployment.ts'

const resourceFeatures: Record<string, (resource: Resource) => boolean> = {
  refreshBeforeUpdate: ({ refreshBeforeUpdate }) => refreshBeforeUpdate === true,
  views: ({ viewOf }) => viewOf !== undefined && viewOf !== '',
  hooks: ({ resourceHooks }) => Object.keys(resourceHooks ?? {}).length > 0,
  taint: ({ taint }) => taint === true,
  replaceWith: ({ replaceWith }) => (replaceWith?.length ?? 0) > 0,
  extensionParameterization: ({ extensionRef }) => extensionRef !== undefined && extensionRef !== '',
  'snippets-prototype': ({ snippetID }) => snippetID !== undefined && snippetID !== '',
}

/**
 * What a reader of the deployment must support, names as in Pulumi's `pkg/resource/stack/deployment.go` (CLI 3.260), sorted. Features of the base
 * that are not known here are kept: an older CLI must not read what it would change.
 * `requiresByteString`: a secret contains bytes that are no UTF-8, which only the CLI that encrypted it can know.
 */
export function featuresOf(
  { resources = [], pending_operations, snippets }: Deployment,
  requiresByteString: boolean,
  ofBase: readonly string[],
): string[] {
  const all = [...resources, ...(pending_operations ?? []).map(({ resource }) => resource)]
  const used = Object.keys(resourceFeatures).filter(name => all.some(resource => resourceFeatures[name]?.(resource)))
  const kept = ofBase.filter(name => !(name in resourceFeatures) && name !== byteString)
  const others = [requiresByteString && all.length > 0 && byteString, (snippets?.length ?? 0) > 0 && 'snippets-prototype']
  return [...new Set([...used, ...kept, ...others.filter(name => name !== false)])].sort()
}

const byteString = 'byteString'
