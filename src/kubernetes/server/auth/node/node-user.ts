import type { User } from '../user.ts'

const nodesGroup = 'system:nodes'
const nodePrefix = 'system:node:'

/** The name of the Node whose kubelet a user is; undefined for any other user. */
export function nodeNameOf({ name, groups }: User): string | undefined {
  if (!name.startsWith(nodePrefix) || name.length === nodePrefix.length || !groups.includes(nodesGroup)) return undefined
  return name.slice(nodePrefix.length)
}

/** The user of the kubelet of a Node. */
export function nodeUser(node: string): { name: string; groups: string[] } {
  return { name: nodePrefix + node, groups: [nodesGroup] }
}
