import type { PlanCounts } from './rows.ts'

/** What a user can do with a Stack, a Run, a worker. The server carries it out with the rights of the user. */
export const actionNames = [
  'run',
  'plan',
  'plan-destroy',
  'refresh',
  'approve',
  'reject',
  'cancel',
  'suspend',
  'resume',
  'destroy',
  'rollback',
  'drain',
  'cordon',
  'uncordon',
] as const
export type ActionName = (typeof actionNames)[number]

/** They ask for the name of the object, and for a sign-in of the last minutes. */
export const destructiveActions: ReadonlySet<ActionName> = new Set<ActionName>(['destroy', 'rollback'])

export type ActionRequest = {
  readonly action: ActionName
  /** Undefined for a Worker. */
  readonly namespace?: string
  readonly name: string
  /** Of an approval, a rejection or a destruction: the digest of the plan that was shown. */
  readonly digest?: string
  /** Of a destruction, in place of the digest: the user has seen that there is nothing to destroy. */
  readonly nothingToDestroy?: true
  /**
   * Of an approval, a rejection or a destruction: those of the Stack that was shown. The action is rejected if its spec has changed since. Of a Run too:
   * without them it is rejected for a Stack that is being deleted.
   */
  readonly uid?: string
  readonly generation?: number
  /** Of a rejection: its reason, which others can read. */
  readonly reason?: string
  /** Of a rollback: the version of the state that becomes the current one, and the one that was when the user looked. */
  readonly version?: number
  readonly currentVersion?: number
  /** Of a destructive action: the name of the object, as the user has typed it. */
  readonly confirmation?: string
}

/** What the destruction of a Stack begins with, as `GET destructions/NAMESPACE/NAME` answers. */
export type Destruction = {
  /** Of the Stack as it was read: its confirmation names them. */
  readonly uid: string
  readonly generation: number
  readonly isDeleting: boolean
  /** Everything that would keep it waiting. */
  readonly blockers: readonly string[]
  /** Whether the Stack has created nothing, so that there is nothing to plan, as where its source is broken. */
  readonly isEmpty: boolean
  /** Of a Stack that is being deleted: the plan that waits for a confirmation. */
  readonly pending?: PlanCounts & { readonly digest: string; readonly runName: string }
}

/** What is done with many Stacks: a plan is approved only on the page that shows it (invariant 11). */
export const bulkActionNames = ['run', 'cancel', 'suspend', 'resume'] as const satisfies readonly ActionName[]

/** An action on everything that a filter matches, or on the Stacks that are named. */
export type BulkRequest = {
  readonly action: (typeof bulkActionNames)[number]
  readonly filter?: string
  readonly stacks?: readonly { readonly key: string }[]
  /** How many the user has seen: more or fewer now, and nothing is done. */
  readonly expected: number
}

export type ActionResult =
  | {
      readonly ok: true
      readonly message: string
      /** Of a requested Run: the Stack has it as `status.handledRequest` once the Run exists. */
      readonly request?: string
    }
  | { readonly ok: false; readonly code: number; readonly reason: string; readonly message: string }

export type BulkResult = { readonly results: readonly ({ readonly key: string } & ActionResult)[] }

/** What can be done with an object now: with the reason if it cannot, and the command that does the same. */
export type Action = {
  readonly name: ActionName
  readonly label: string
  readonly enabled: boolean
  /** Why it is not enabled: no right, or the state of the object. */
  readonly why?: string
  /** What it does, where the state of the object makes that another thing than usual. */
  readonly effect?: string
  readonly command: string
}
