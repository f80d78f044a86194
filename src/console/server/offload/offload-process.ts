import { serveProcessRequests } from '../../../kubernetes/util/index.ts'
import { performTask } from './stack-tasks.ts'

// The process of a TaskRunner: controllers that run in the same process as the console continue, whatever the input needs.
serveProcessRequests(performTask)
