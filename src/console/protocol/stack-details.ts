import type { StackState } from './rows.ts'

/** Parts of the page of a Stack, each at an address of its own (`stacks/NS/NAME/SECTION`). The first is the page without a section. */
export const stackSections = ['overview', 'resources', 'outputs', 'variables', 'state', 'dependencies', 'drift', 'events', 'yaml'] as const
export type StackSection = (typeof stackSections)[number]

/** A value that is hidden until the user asks for it. */
export type Hidden = { readonly hidden: true }
/** A JSON value, or that there is one. */
export type ShownValue = { readonly value: unknown } | Hidden

/** What a stored version of the state manages: names only, no attribute (invariant 9). */
export type StackResources = {
  /** `none`: there is no state yet. `external`: Oarlock does not store it. `unknown`: of another format. */
  readonly format: 'terraform' | 'pulumi' | 'inventory' | 'unknown' | 'none' | 'external'
  readonly version?: number
  /** By whom and when it was written. */
  readonly author?: string
  readonly createdMs?: number
  readonly resources: readonly { readonly address: string; readonly type: string; readonly provider: string }[]
  /** How many there are, if {@link StackResources.resources} has only the first. */
  readonly total: number
  /** Operations that had begun when the engine ended. */
  readonly pending: readonly { readonly type: string; readonly address: string }[]
}

/** One resource of a stored version of the state. */
export type ResourceDetails = {
  readonly address: string
  readonly version: number
  readonly format: 'terraform' | 'pulumi' | 'inventory'
  /** What has this address: several if a resource was replaced more than once, and what it was is not deleted yet. */
  readonly objects: readonly ResourceObject[]
  /** How many more have it. */
  readonly moreObjects: number
  /** The version of the engine that wrote the state, if it does not record what providers mark as sensitive: no value is shown then. Empty: it is not known. */
  readonly unmarkedBy?: string
}
export type ResourceObject = {
  /** What the engine records of it besides its attributes, such as the provider and what it depends on. */
  readonly facts: readonly ResourceAttribute[]
  readonly attributes: readonly ResourceAttribute[]
  /** Of Pulumi: those that differ from the output of the same name. */
  readonly inputs: readonly ResourceAttribute[]
  /** How many more attributes and inputs it has. */
  readonly more: number
}
export type ResourceAttribute = {
  readonly name: string
  /** A text as it is, any other value as indented JSON with {@link sensitiveText} in place of what is sensitive. Undefined: all of it is sensitive. */
  readonly text?: string
  /** Whether {@link ResourceAttribute.text} is only the beginning. */
  readonly isCut?: true
}
/** Without quotes: no value in JSON looks like it. */
export const sensitiveText = '(sensitive)'
/** Attributes of one resource, and bytes of their texts as JSON. */
export const maxAttributes = 500
export const maxAttributeBytes = 256 * 1024

export type StackOutput = { readonly name: string; readonly isSensitive: boolean } & ShownValue
export type StackOutputs = {
  readonly outputs: readonly StackOutput[]
  readonly secretName: string
  /** Why sensitive outputs are not listed. */
  readonly problem?: string
}

/** Where the value of a variable comes from. */
export type VariableSource =
  | { readonly kind: 'Spec' }
  | { readonly kind: 'Secret' | 'ConfigMap'; readonly name: string; readonly key?: string }
  | { readonly kind: 'Stack'; readonly name: string; readonly output?: string }

export type StackVariable = {
  /** Undefined: every key or output of the source is a variable, and they are not known here. */
  readonly name?: string
  /** The field of the Stack, such as `spec.variablesFrom[0].secretRef`. */
  readonly field: string
  readonly source: VariableSource
  readonly content?: ShownValue
  /** The field whose value is used instead of this one. */
  readonly overriddenBy?: string
  /** Why its value is not known. */
  readonly problem?: string
}
export type StackVariables = { readonly variables: readonly StackVariable[]; readonly environment: readonly StackVariable[] }

export type StateVersion = {
  readonly version: number
  readonly kind: 'terraform' | 'inventory' | 'pulumi' | 'pulumi-journal'
  readonly epoch: number
  readonly author: string
  /** 0: the state was deleted. */
  readonly bytes: number
  readonly createdMs: number
  readonly isCurrent: boolean
  /** Why it was rejected and never became current (invariant 3). */
  readonly orphanReason?: string
  /** Why it cannot become the current one again. */
  readonly whyNoRollback?: string
}
export type StateVersions = {
  /** The newest first. */
  readonly versions: readonly StateVersion[]
  /** Who holds the lock. */
  readonly lock?: { readonly holder: string; readonly sinceMs: number }
  /** Why this user cannot roll back. */
  readonly whyNoRollback?: string
}

export type AttributeChange = { readonly path: string; readonly from?: ShownValue; readonly to?: ShownValue }
export type ResourceChange = {
  readonly address: string
  readonly change: 'added' | 'removed' | 'changed'
  /** Of a changed one, at most {@link maxAttributeChanges}. */
  readonly attributes: readonly AttributeChange[]
  readonly moreAttributes: number
}
/** What differs between two versions of a state. */
export type StateDiff = {
  /** Undefined: nothing, the version is compared with an empty state. */
  readonly from?: number
  readonly to: number
  /** At most {@link maxResourceChanges}. */
  readonly resources: readonly ResourceChange[]
  readonly moreResources: number
  readonly outputs: readonly AttributeChange[]
  readonly unchanged: number
}
export const maxResourceChanges = 500
export const maxAttributeChanges = 100

export type StackEvent = {
  readonly key: string
  readonly type: string
  readonly reason: string
  readonly message: string
  readonly count: number
  readonly firstMs: number
  readonly lastMs: number
  readonly source: string
}

export type StackYaml = {
  readonly yaml: string
  readonly resourceVersion: string
  /** Why the user may not edit it. Default: they may. */
  readonly whyNoEdit?: string
}
/** `resourceVersion`: of the Stack that was shown. Without `apply` the server only validates. */
export type YamlRequest = { readonly yaml: string; readonly resourceVersion: string; readonly apply?: boolean }
export type YamlProblem = {
  readonly message: string
  readonly field?: string
  /** From 1. */
  readonly line?: number
}
export type YamlResult =
  | { readonly ok: true; readonly applied: boolean; readonly resourceVersion: string; readonly diff: readonly DiffLine[] }
  | { readonly ok: false; readonly problems: readonly YamlProblem[] }
export type DiffLine = { readonly sign: '+' | '-' | ' ' | '…'; readonly text: string }

export type GraphNode = {
  readonly name: string
  /** Undefined: it does not exist, or the user may not list Stacks. */
  readonly state?: StackState
  /** Why there is no state. */
  readonly problem?: string
  /** Negative: upstream, 0: the Stack itself, positive: downstream. What is needed is always in a lower layer, unless there is a cycle. */
  readonly layer: number
}
/** `from` needs `to`. */
export type GraphEdge = { readonly from: string; readonly to: string; readonly via: readonly ('dependsOn' | 'outputs')[] }
export type StackGraph = {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  /** Stacks that are not shown, because there are more than {@link maxGraphNodes}. */
  readonly more: number
  /** What this user does not see of it. */
  readonly problem?: string
}
export const maxGraphNodes = 100
