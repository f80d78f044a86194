/** The fields of a managed resource that its controller knows. An author declares a kind with {@link managedSpec} and {@link managedStatus}. */
import {
  type Condition,
  conditionsSchema,
  type JsonObject,
  type KubeObject,
  type PrinterColumn,
  Type,
} from '../../kubernetes/object/index.ts'
import { managementActions } from './management-policies.ts'

export type ManagedBody = {
  spec?:
    | {
        forProvider?: unknown
        managementPolicies?: readonly string[] | undefined
        deletionPolicy?: string | undefined
        writeConnectionSecretToRef?: { name: string } | undefined
      }
    | undefined
  status?:
    | {
        atProvider?: unknown
        conditions?: Condition[] | undefined
        observedGeneration?: number | undefined
        lastHandledReconcileAt?: string | undefined
        run?: RunReport | undefined
      }
    | undefined
}

/** Any managed resource, as the decider sees it. */
export type ManagedObject = KubeObject<ManagedBody>

/** The newest Run of a resource whose changes are dispatched to workers. */
export type RunReport = {
  /** Undefined until it exists. */
  readonly name?: string | undefined
  readonly type: string
  readonly phase: string
  readonly progress?: { readonly done: number; readonly total: number; readonly current?: string | undefined } | undefined
  readonly message?: string | undefined
}

type Declaration = ReturnType<typeof Type.Object>

/** The `spec` of a managed kind: `forProvider` are the wanted fields of the external resource, the rest are Crossplane's fields of every resource. */
export function managedSpec<ForProvider extends Declaration>(forProvider: ForProvider) {
  return Type.Object({
    forProvider,
    managementPolicies: Type.Optional(
      Type.Array(Type.Enum([...managementActions]), {
        default: ['*'],
        description:
          "What the controller may do: ['*'] for everything, [] to pause, or Observe with some of Create, Update, Delete and LateInitialize.",
      }),
    ),
    providerConfigRef: Type.Optional(
      Type.Object(
        { kind: Type.Optional(Type.String()), name: Type.String() },
        { description: 'The object with the address and the credentials of the external system.' },
      ),
    ),
    writeConnectionSecretToRef: Type.Optional(
      Type.Object({ name: Type.String() }, { description: 'The Secret in the same namespace that receives the connection details.' }),
    ),
  })
}

/** The `status` of a managed kind: `atProvider` are observed fields of the external resource. */
export function managedStatus<AtProvider extends Declaration>(atProvider: AtProvider) {
  return Type.Object({
    atProvider: Type.Optional(atProvider),
    conditions: Type.Optional(conditionsSchema),
    observedGeneration: Type.Optional(Type.Integer()),
    lastHandledReconcileAt: Type.Optional(
      Type.String({ description: 'The last value of the annotation crossplane.io/reconcile-requested-at that was acted on.' }),
    ),
    run: Type.Optional(
      Type.Object(
        {
          name: Type.Optional(Type.String({ description: 'Name of the Run, for oarlock logs and oarlock cancel; unset until it exists.' })),
          type: Type.String({ description: 'Type of the Run.' }),
          phase: Type.String({ description: 'Phase of the Run.' }),
          progress: Type.Optional(
            Type.Object(
              { done: Type.Integer(), total: Type.Integer(), current: Type.Optional(Type.String()) },
              { description: 'Finished steps, all steps, and the present one, while the Run reports them.' },
            ),
          ),
          message: Type.Optional(Type.String({ description: 'Why it waits, or why it failed.' })),
        },
        { description: 'The newest Run, if changes of this kind are dispatched to workers.' },
      ),
    ),
  })
}

/** The columns of `kubectl get`, as Crossplane's kinds have them: for `printerColumns` of a kind. */
export const managedColumns: PrinterColumn[] = [
  { name: 'Synced', jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
  { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'External-Name', jsonPath: '.metadata.annotations.crossplane\\.io/external-name' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]

/** Bytes, or text, by key: what a client needs to use the external resource. Stored in a Secret, never in a status. */
export type ConnectionDetails = Readonly<Record<string, string | Uint8Array>>

/** What an observation of the external resource found. `State` is what the author passes on to update and delete. */
export type Observation<State = unknown> = {
  readonly exists: boolean
  /** Whether the external resource has the wanted fields. Default: true. */
  readonly isUpToDate?: boolean | undefined
  /** What differs, for people, without secrets. */
  readonly diff?: string | undefined
  /** Whether it can be used. Default: true if it exists. An object gives the reason why it cannot yet. */
  readonly ready?: boolean | { readonly reason: 'Creating' | 'Updating' | 'Deleting' | 'Unavailable'; readonly message: string } | undefined
  /** Why an earlier change has failed, if it is known only now. Reported as Synced=False; nothing is repeated because of it. */
  readonly problem?: string | undefined
  /** The new `status.run`. Default: unchanged. */
  readonly run?: RunReport | undefined
  /** The new `status.atProvider`. Default: unchanged. */
  readonly atProvider?: object | undefined
  readonly connectionDetails?: ConnectionDetails | undefined
  readonly state?: State | undefined
}

/** What a creation or update tells. */
export type Change = {
  /** The name that the external system gave; default: unchanged. */
  readonly externalName?: string | undefined
  readonly connectionDetails?: ConnectionDetails | undefined
  /** Fields of `status.atProvider` that only the change knows, such as the version of a password. Default: as observed. */
  readonly atProvider?: object | undefined
  /** For the change log. */
  readonly details?: Readonly<Record<string, string>> | undefined
}

/** Fields of `spec.forProvider` that the user left out and the external system chose. */
export type LateInitialized = JsonObject
