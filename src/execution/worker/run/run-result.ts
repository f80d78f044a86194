import type { RunStatus } from '../../../api/index.ts'

/** How the work of a Run ended, as its status reports it. */
export type RunResult = Partial<RunStatus> & Pick<RunStatus, 'phase'>
