import { type KubeObject, nameErrors } from '../../../object/index.ts'

function warn({ metadata: { name } }: KubeObject, before: KubeObject | undefined, use: string): string[] {
  const reasons = before ? [] : nameErrors(name, 'dns1123Label')
  if (reasons.length === 0) return []
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${reasons.join(' ')}]`,
  ]
}

/** Warns about a new workload whose name is not a DNS label: the names of its Pods begin with it. */
export function workloadNameWarnings(object: KubeObject, before: KubeObject | undefined): string[] {
  return warn(object, before, 'Pod names and hostnames')
}

export function podNameWarnings(pod: KubeObject, before: KubeObject | undefined): string[] {
  return warn(pod, before, "the Pod's hostname")
}
