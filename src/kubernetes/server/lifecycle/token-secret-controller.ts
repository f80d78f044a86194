import { isJsonObject, type KubeObject } from '../../object/index.ts'
import type { ServiceAccountTokens } from '../auth/index.ts'
import { mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

const tokenType = 'kubernetes.io/service-account-token'
const nameAnnotation = 'kubernetes.io/service-account.name'
const uidAnnotation = 'kubernetes.io/service-account.uid'

/**
 * Fills in the token, certificate authority and namespace of Secrets of type `kubernetes.io/service-account-token`, and deletes them with
 * their ServiceAccount, as kube-controller-manager does.
 */
export class TokenSecretController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #tokens: ServiceAccountTokens
  readonly #caCertificate: string
  readonly #secrets: Table
  readonly #accounts: Table

  constructor(store: Store, queue: TaskQueue, tokens: ServiceAccountTokens, caCertificate: string) {
    this.#store = store
    this.#queue = queue
    this.#tokens = tokens
    this.#caCertificate = caCertificate
    this.#secrets = store.table('secrets')
    this.#accounts = store.table('serviceaccounts')
  }

  start(): void {
    for (const entry of this.#secrets.values()) this.#enqueue(entry)
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    if (table === this.#secrets) {
      for (const { type, entry } of events) if (type !== 'DELETED') this.#enqueue(entry)
    } else if (table === this.#accounts) {
      for (const { type, entry } of events) {
        if (type === 'DELETED') for (const secret of this.#secrets.inNamespace(entry.namespace)) this.#enqueue(secret)
      }
    }
  }

  #enqueue(entry: StoredEntry): void {
    // The type is a selectable field, so other Secrets are not parsed.
    if (entry.fields?.[this.#secrets.fieldNames.indexOf('type')] !== tokenType || entry.deleting) return
    this.#queue.add(`token secret ${entry.key}`, () => this.#reconcile(entry.key))
  }

  async #reconcile(key: string): Promise<void> {
    await mutate(this.#store, this.#secrets, key, head => {
      if (!head || head.deleting) return { result: undefined }
      const secret = parseEntry(head)
      if (secret.type !== tokenType) return { result: undefined }
      const { metadata } = secret
      const account = this.#accounts.get(`${head.namespace}/${metadata.annotations?.[nameAnnotation]}`)
      const uid = metadata.annotations?.[uidAnnotation]
      if (!account || (uid && uid !== account.uid)) {
        // A Secret with finalizers is left to their owners.
        return metadata.finalizers?.length ? { result: undefined } : { remove: secret }
      }
      const next = this.#withToken(secret, account)
      return next ? { put: next } : { result: undefined }
    })
  }

  #withToken(secret: KubeObject, account: StoredEntry): KubeObject | undefined {
    const data = isJsonObject(secret.data) ? secret.data : {}
    const { annotations } = secret.metadata
    const desired = { 'ca.crt': base64(this.#caCertificate), namespace: base64(account.namespace) }
    if (data.token && data['ca.crt'] === desired['ca.crt'] && data.namespace && annotations?.[uidAnnotation] === account.uid)
      return undefined
    const token = data.token ?? base64(this.#tokens.issueForSecret(account.namespace, account, secret.metadata.name))
    return {
      ...secret,
      metadata: { ...secret.metadata, annotations: { ...annotations, [uidAnnotation]: account.uid } },
      data: { ...data, ...desired, token },
    }
  }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
