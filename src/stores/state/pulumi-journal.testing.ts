/** Entries as the Pulumi CLI writes them, for tests of stores. */

export const urnOf = (name: string) => `urn:pulumi:dev::app::a:b:C::${name}`
export const resource = (name: string, more: object = {}) => ({ urn: urnOf(name), custom: true, type: 'a:b:C', ...more })

export type Entry = { sequenceID: number; [field: string]: unknown }
const entry = (sequenceID: number, kind: number, more: object): Entry => ({
  ...{ version: 1, kind, sequenceID, operationID: sequenceID, removeOld: null, removeNew: null },
  ...more,
})
export const begin = (sequenceID: number, name: string, more: object = {}) =>
  entry(sequenceID, 0, { operation: { type: 'creating', resource: resource(name) }, ...more })
export const created = (sequenceID: number, name: string, more: object = {}) => entry(sequenceID, 1, { state: resource(name), ...more })
export const removed = (sequenceID: number, removeOld: number) => entry(sequenceID, 1, { removeOld })

export const batch = (...entries: Entry[]): Buffer => Buffer.from(JSON.stringify({ entries }))
export const stateOf = (...names: string[]): Buffer =>
  Buffer.from(JSON.stringify({ version: 3, deployment: { resources: names.map(name => resource(name)) } }))

/** Names of the resources of a state. */
export function namesIn(bytes: Uint8Array | undefined): string[] | undefined {
  if (bytes === undefined) return undefined
  const { deployment } = JSON.parse(Buffer.from(bytes).toString()) as { deployment: { resources: { urn: string }[] } }
  return deployment.resources.map(({ urn }) => urn.split('::').at(-1) ?? '')
}
