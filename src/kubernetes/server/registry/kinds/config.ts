import { forbiddenField, invalidValue, type KubeObject, requiredValue, type StatusCause, tooLong } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { tlsWarnings } from '../warnings/index.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const configKinds: readonly KindDeclaration[] = [
  {
    kind: 'ConfigMap',
    plural: 'configmaps',
    shortNames: ['cm'],
    typeName: 'io.k8s.api.core.v1.ConfigMap',
    columns: [
      nameColumn,
      column(
        'Data',
        "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.",
        object => countKeys(object.data) + countKeys(object.binaryData),
      ),
      ageColumn,
    ],
    validate: (object, oldObject) => [
      ...dataErrors(object, ['data', 'binaryData']),
      ...Object.keys((object.data ?? {}) as object)
        .filter(key => Object.hasOwn((object.binaryData ?? {}) as object, key))
        .map(key => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData')),
      ...immutableErrors(object, oldObject, ['data', 'binaryData']),
    ],
  },
  {
    kind: 'Secret',
    plural: 'secrets',
    typeName: 'io.k8s.api.core.v1.Secret',
    columns: [
      nameColumn,
      column('Type', 'What the data is for.', object => object.type),
      column('Data', 'How many keys it has.', object => countKeys(object.data)),
      ageColumn,
    ],
    selectableFields: [{ field: 'type', read: object => String(object.type ?? '') }],
    prepareForWrite: prepareSecret,
    warnings: tlsWarnings,
    validate: (object, oldObject) => {
      const causes = [...dataErrors(object, ['data']), ...secretTypeErrors(object), ...immutableErrors(object, oldObject, ['data'])]
      if (oldObject && oldObject.type !== object.type) causes.push(invalidValue('type', object.type, 'field is immutable'))
      return causes
    },
  },
]

function prepareSecret(secret: KubeObject): void {
  if (secret.type === undefined || secret.type === '') secret.type = 'Opaque'
  const { stringData } = secret
  if (stringData && typeof stringData === 'object') {
    const encoded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
    secret.data = { ...(secret.data as object), ...Object.fromEntries(encoded) }
  }
  delete secret.stringData
}

function countKeys(value: unknown): number {
  return value && typeof value === 'object' ? Object.keys(value).length : 0
}

const maxDataBytes = 1024 * 1024
const keyPattern = /^[-._a-zA-Z0-9]+$/

function dataErrors(object: KubeObject, fields: string[]): StatusCause[] {
  const causes: StatusCause[] = []
  let bytes = 0
  for (const field of fields) {
    for (const [key, value] of Object.entries((object[field] ?? {}) as Record<string, string>)) {
      bytes += String(value).length
      if (key.length > 253) causes.push(invalidValue(`${field}[${key}]`, key, 'must be no more than 253 characters'))
      else if (key === '.' || key === '..') causes.push(invalidValue(`${field}[${key}]`, key, `must not be '${key}'`))
      else if (key.startsWith('..')) causes.push(invalidValue(`${field}[${key}]`, key, "must not start with '..'"))
      else if (!keyPattern.test(key)) {
        const reason = `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`
        causes.push(invalidValue(`${field}[${key}]`, key, reason))
      }
    }
  }
  if (bytes > maxDataBytes * 1.4) causes.push(tooLong('', maxDataBytes))
  return causes
}

const secretKeys: Record<string, readonly string[]> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

/** The required keys of Kubernetes' Secret types. Values are never part of a message. */
function secretTypeErrors({ type, data, metadata }: KubeObject): StatusCause[] {
  const values = (data ?? {}) as Record<string, string>
  if (type === 'kubernetes.io/service-account-token') {
    const annotation = 'kubernetes.io/service-account.name'
    return metadata.annotations?.[annotation] ? [] : [requiredValue(`metadata.annotations[${annotation}]`)]
  }
  if (type === 'kubernetes.io/basic-auth') {
    if (Object.hasOwn(values, 'username') || Object.hasOwn(values, 'password')) return []
    return [requiredValue('data[username]'), requiredValue('data[password]')]
  }
  return (secretKeys[String(type)] ?? []).flatMap(key => {
    if (!Object.hasOwn(values, key)) return [requiredValue(`data[${key}]`)]
    if (!key.startsWith('.')) return []
    const reason = jsonError(Buffer.from(String(values[key]), 'base64').toString())
    return reason ? [invalidValue(`data[${key}]`, '<secret contents redacted>', reason)] : []
  })
}

function jsonError(json: string): string | undefined {
  try {
    JSON.parse(json)
    return undefined
  } catch (error) {
    return /end of JSON input|property name|after/.test((error as Error).message) ? 'unexpected end of JSON input' : 'invalid JSON'
  }
}

function immutableErrors(object: KubeObject, oldObject: KubeObject | undefined, fields: string[]): StatusCause[] {
  if (oldObject?.immutable !== true) return []
  const causes: StatusCause[] = []
  if (object.immutable !== true) causes.push(forbiddenField('immutable', 'field is immutable when `immutable` is set'))
  for (const field of fields) {
    if (JSON.stringify(oldObject[field] ?? {}) !== JSON.stringify(object[field] ?? {})) {
      causes.push(forbiddenField(field, 'field is immutable when `immutable` is set'))
    }
  }
  return causes
}
