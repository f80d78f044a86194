import type { Stack } from '../../api/index.ts'

/** Which kind of state the engine of a Stack has. */
export type StateKind = 'terraform' | 'pulumi'

export const stateKindOf = ({ spec }: Pick<Stack, 'spec'>): StateKind => ((spec.engine as string) === 'pulumi' ? 'pulumi' : 'terraform')
