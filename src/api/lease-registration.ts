import { type KubeObject, parseQuantity } from '../kubernetes/object/index.ts'
import { annotations } from './names.ts'
import { isolationLevels, networks } from './shared.ts'
import { hasRegistered, type Worker, type WorkerStatus } from './worker.ts'

/** The part of a Lease that {@link registrationOf} reads. */
export type RegistrationLease = Pick<KubeObject, 'metadata'> & {
  readonly spec?: { readonly holderIdentity?: string | null | undefined } | undefined
}

/** What a worker Pod reports with its Lease. */
export type LeaseRegistration = { readonly workerUid: string; readonly podUid: string; readonly status: WorkerStatus }

/**
 * A OneShot worker in a Pod registers with one write, its Lease: the owner is its Worker, the holder is its Pod, and the annotation has the status that it
 * reports. It writes its Worker only when it lives for longer than a quick Run. Undefined for every other Lease, and for one whose annotation is not valid:
 * workers write it, and dispatch decides by it.
 */
export function registrationOf({ metadata, spec }: RegistrationLease): LeaseRegistration | undefined {
  const text = metadata.annotations?.[annotations.workerStatus]
  const workerUid = metadata.ownerReferences?.find(({ kind }) => kind === 'Worker')?.uid
  const status = text === undefined ? undefined : parseStatus(text)
  const podUid = spec?.holderIdentity
  return status && workerUid && podUid ? { workerUid, podUid, status } : undefined
}

/** The Worker as its Lease has registered it; the same object if it has registered itself, has failed, or is not the one that the Lease belongs to. */
export function registeredBy<W extends Worker>(worker: W, registration: LeaseRegistration | undefined): W {
  const { metadata, spec, status } = worker
  if (!registration || registration.workerUid !== metadata.uid || !spec?.start || !spec.pod) return worker
  if (hasRegistered(worker) || status?.phase === 'Failed') return worker
  const { reason: _, message: __, ...own } = status ?? {}
  const pod = { ...spec.pod, uid: spec.pod.uid ?? registration.podUid }
  return { ...worker, spec: { ...spec, pod }, status: { ...own, ...registration.status } }
}

function parseStatus(text: string): WorkerStatus | undefined {
  try {
    const { engines, isolation, networks: reachable, capacity, host, pid, version } = Object(JSON.parse(text)) as Record<string, unknown>
    return {
      phase: 'Ready',
      runs: [],
      ...optional('engines', engines, isTexts),
      ...optional('isolation', isolation, isListOf(isolationLevels)),
      ...optional('networks', reachable, isListOf(networks)),
      ...optional('capacity', capacity, isCapacity),
      ...optional('host', host, isText),
      ...optional('version', version, isText),
      ...optional('pid', pid, Number.isSafeInteger),
    } as WorkerStatus
  } catch {
    return undefined
  }
}

/** @throws {TypeError} if the value is there and not valid. */
function optional(field: string, value: unknown, isValid: (value: unknown) => boolean): object {
  if (value === undefined) return {}
  if (!isValid(value)) throw new TypeError(`${field} is not valid`)
  return { [field]: value }
}

const isText = (value: unknown) => typeof value === 'string'
const isTexts = (value: unknown) => typeof value === 'object' && value !== null && Object.values(value).every(isText)
const isListOf = (allowed: readonly string[]) => (value: unknown) => Array.isArray(value) && value.every(each => allowed.includes(each))
/** @throws if a quantity is not valid. */
const isCapacity = (value: unknown) =>
  isTexts(value) && Object.values(value as Record<string, string>).every(each => parseQuantity(each) !== undefined)
