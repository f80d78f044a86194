import { InvalidArgumentError } from 'commander'

export const partitionRoles = ['Tenants', 'Resources'] as const
export type PartitionRole = (typeof partitionRoles)[number]

/** `Tenants,Resources`. */
export function rolesOf(text: string): PartitionRole[] {
  const roles = text.split(',').map(part => partitionRoles.find(role => role.toLowerCase() === part.trim().toLowerCase()))
  const known = roles.filter(role => role !== undefined)
  if (known.length !== roles.length) throw new InvalidArgumentError('Tenants, Resources or both, separated by a comma, are expected.')
  return [...new Set(known)]
}
