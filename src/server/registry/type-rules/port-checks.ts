import { invalidValue, type StatusCause } from '../../../kube/index.ts'

export function portNumberErrors(port: number, path: string): StatusCause[] {
  return port >= 1 && port <= 65_535 ? [] : [invalidValue(path, port, 'must be between 1 and 65535, inclusive')]
}

/** Why `name` cannot be that of a port (an IANA service name). */
export function portNameErrors(name: string, path: string): StatusCause[] {
  const texts: string[] = []
  if (name.length > 15) texts.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) texts.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(name)) texts.push('must contain at least one letter (a-z)')
  if (name.includes('--')) texts.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) texts.push('must not begin or end with a hyphen')
  return texts.map(why => invalidValue(path, name, why))
}
