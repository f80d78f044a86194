import { serveThreadRequests } from '../../../kubernetes/util/index.ts'
import { performTask } from './tasks.ts'

// The thread of a TaskRunner: controllers that run in the same process as the console continue meanwhile.
serveThreadRequests(performTask)
