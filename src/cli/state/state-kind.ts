import type { Stack } from '../../api/index.ts'
import type { VersionInfo } from '../../stores/state/index.ts'

/** Which kind of state the engine of a Stack has. */
export type StateKind = 'terraform' | 'pulumi'

/** The kinds of versions by which a user knows what the engine has made. Engine `command` stores an inventory besides its state. */
export const mainKindsOf = ({ spec }: Pick<Stack, 'spec'>): readonly VersionInfo['kind'][] =>
  spec.engine === 'manifests' ? ['inventory'] : stateKindOf({ spec }) === 'pulumi' ? ['pulumi', 'pulumi-journal'] : ['terraform']

export const stateKindOf = ({ spec }: Pick<Stack, 'spec'>): StateKind => ((spec.engine as string) === 'pulumi' ? 'pulumi' : 'terraform')
