import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A row of the first table of docs/ports.md. */
export type DocumentedPort = { readonly command: string; readonly option: string; readonly defaultAddress: string | undefined }

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'ports.md'), 'utf8')
const row = /^\| `oarlock ([a-z-]+)` \| `(--[a-z-]+)` \| (?:`([^`]+)`|none) \|/gm

export const documentedPorts: readonly DocumentedPort[] = [...page.matchAll(row)].map(([, command = '', option = '', address]) => ({
  command,
  option,
  defaultAddress: address,
}))

/** On how many addresses a command listens when all its options are given but those of `without`. */
export const documentedPortCount = (command: string, without: readonly string[] = []): number =>
  documentedPorts.filter(port => port.command === command && !without.includes(port.option)).length
