import { readFileSync } from 'node:fs'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { SharedTrust } from '../../kubernetes/server/index.ts'
import { AppStartError } from '../app-start-error.ts'

const pem = Type.String({ pattern: '^-----BEGIN ' })
const pair = Type.Object({ certificate: pem, key: pem })
const home = Type.Object({ name: Type.String({ minLength: 1 }), server: Type.String({ pattern: '^https://' }), caCertificate: pem })
const sharedTrust = Type.Object({
  'ca.crt': pem,
  'ca.key': pem,
  'kubelet-ca.crt': pem,
  'kubelet-ca.key': pem,
  'front-proxy-ca.crt': pem,
  'service-account.key': pem,
  'token-key': Type.String({ minLength: 32 }),
})

const schemas = {
  PartitionConfiguration: Type.Object({
    kind: Type.Literal('PartitionConfiguration'),
    name: Type.String({ minLength: 1 }),
    number: Type.Integer({ minimum: 1, maximum: 63 }),
    home: Type.Object({ ...home.properties, client: pair }),
    trust: sharedTrust,
  }),
  GatewayConfiguration: Type.Object({
    kind: Type.Literal('GatewayConfiguration'),
    home,
    frontProxy: pair,
    serving: pair,
    pageTokenKey: Type.String({ minLength: 32 }),
  }),
}

/** PEM. */
export type Pair = { readonly certificate: string; readonly key: string }

export type HomeAddress = {
  /** Of its Partition. */
  readonly name: string
  readonly server: string
  readonly caCertificate: string
}

/** What `oarlock serve --partition` reads: which partition the server is, and the keys that it has in common with home. */
export type PartitionConfiguration = {
  readonly kind: 'PartitionConfiguration'
  readonly name: string
  readonly number: number
  /** With the certificate by which the partition reads what it copies. */
  readonly home: HomeAddress & { readonly client: Pair }
  readonly trust: SharedTrust
}

/** What `oarlock gateway` reads. */
export type GatewayConfiguration = {
  readonly kind: 'GatewayConfiguration'
  readonly home: HomeAddress
  /** With which every partition accepts whom the gateway has authenticated. */
  readonly frontProxy: Pair
  readonly serving: Pair
  /** Signs the tokens of list pages: the same in all gateways. */
  readonly pageTokenKey: string
}

type Configurations = { PartitionConfiguration: PartitionConfiguration; GatewayConfiguration: GatewayConfiguration }

/** @throws {AppStartError} naming the file and the first field that is missing or wrong. */
export function readConfiguration<Kind extends keyof Configurations>(path: string, kind: Kind): Configurations[Kind] {
  const command = kind === 'PartitionConfiguration' ? 'partition add' : 'partition add-gateway'
  const hint = `"oarlock ${command}", run on the home partition, writes this file`
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new AppStartError('Configuration', `${path} cannot be read as JSON: ${(error as Error).message}`, hint)
  }
  const schema = schemas[kind]
  const [error] = Value.Errors(schema, value)
  if (error) throw new AppStartError('Configuration', `${path} is no ${kind}: ${error.instancePath || 'it'} ${error.message}`, hint)
  return value as Configurations[Kind]
}

export const formatConfiguration = (configuration: PartitionConfiguration | GatewayConfiguration): string =>
  `${JSON.stringify(configuration, undefined, 2)}\n`
