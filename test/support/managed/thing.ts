/** A provider of Things, which are files of a directory: its operations are executed by workers, which run this file as their program. */
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type DispatchOptions,
  type ManagedOptions,
  managed,
  managedSpec,
  managedStatus,
  runOperation,
  UnknownOutcomeError,
} from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import type { Manager, ManagerOptions } from '../../../src/kubernetes/controller/index.ts'
import { defineResource, type Resource, Type } from '../../../src/kubernetes/object/index.ts'
import { type Provider, startProvider } from './provider.ts'

export const thingResource = defineResource({
  group: 'things.example',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  scope: 'Namespaced',
  description: 'A file of a directory.',
  spec: managedSpec(
    Type.Object({
      directory: Type.String(),
      size: Type.Integer(),
      /** The operation continues when this file of the directory exists. */
      waitsFor: Type.Optional(Type.String()),
      /** `known`, `unknown`: it fails while the file `NAME.ok` does not exist. */
      fails: Type.Optional(Type.String()),
    }),
  ),
  status: managedStatus(Type.Object({ size: Type.Optional(Type.Integer()) })),
})
export type ThingBody = typeof thingResource extends Resource<infer Body> ? Body : never
type Options = ManagedOptions<ThingBody, { directory: string }, { size: number }>

export const dispatch: DispatchOptions<ThingBody> = {
  operations: ['create', 'update', 'delete'],
  program: [process.execPath, import.meta.filename],
  variables: ({ object }) => ({ hint: `for ${object.metadata.name}` }),
}

/** The ledger of a directory: one line for each call, with the name of the Thing. */
export const ledgerOf = (directory: string): string[] =>
  existsSync(join(directory, 'ledger')) ? readFileSync(join(directory, 'ledger'), 'utf8').split('\n').filter(Boolean) : []

export const thingsOf = (directory: string): string[] => readdirSync(directory).filter(name => name.endsWith('.thing'))

export function thingOptions(change: Partial<Options> = {}): Options {
  const file = (directory: string, name: string) => join(directory, `${name}.thing`)
  const work: Options['create'] = async ({ directory }, { object, signal, variables }) => {
    const { name } = object.metadata
    const { waitsFor, fails } = object.spec.forProvider
    const operation = object.metadata.deletionTimestamp ? 'delete' : variables?.hint === `for ${name}` ? 'work' : 'inline'
    appendFileSync(join(directory, 'ledger'), `${operation} ${name}\n`)
    while (waitsFor && !existsSync(join(directory, waitsFor))) await sleep(20, undefined, { signal })
    if (!fails || existsSync(join(directory, `${name}.ok`))) return
    throw fails === 'unknown' ? new UnknownOutcomeError('the answer was lost') : new Error('the quota is exhausted')
  }
  return {
    kind: thingResource,
    externalNames: 'assigned',
    creationGraceMs: 1,
    deletionCheckMs: 100,
    pollIntervalMs: 2_000,
    backoff: { baseDelayMs: 50, maxDelayMs: 500 },
    connect: async ({ object }) => ({ directory: object.spec.forProvider.directory }),
    async observe({ directory }, { object, externalName }) {
      if (!externalName || !existsSync(file(directory, externalName))) return { exists: false }
      const size = Number(readFileSync(file(directory, externalName), 'utf8'))
      return { exists: true, isUpToDate: size === object.spec.forProvider.size, atProvider: { size }, state: { size } }
    },
    async create(connection, request) {
      await work(connection, request)
      const { directory } = connection
      const { metadata, spec } = request.object
      const id = request.externalName ?? `${metadata.name}-${thingsOf(directory).length}`
      writeFileSync(file(directory, id), String(spec.forProvider.size))
      return { externalName: id, connectionDetails: { password: `hidden-${id}` }, details: { id } }
    },
    async update(connection, request, { state }) {
      await work(connection, request)
      const { directory } = connection
      if (!state) throw new Error('the observation was not passed on')
      writeFileSync(file(directory, request.externalName ?? ''), String(request.object.spec.forProvider.size))
    },
    async delete(connection, request) {
      await work(connection, request)
      rmSync(file(connection.directory, request.externalName ?? ''), { force: true })
    },
    ...change,
  }
}

export async function startThingProvider(
  client: Client,
  change: Partial<Options> | ((manager: Manager) => Partial<Options>) = {},
  managerOptions: Partial<ManagerOptions> = {},
): Promise<Provider> {
  const optionsOf = (manager: Manager) => (typeof change === 'function' ? change(manager) : change)
  return await startProvider(client, manager => managed(thingOptions({ dispatch, ...optionsOf(manager) })), managerOptions)
}

if (import.meta.main) await runOperation(thingOptions())
