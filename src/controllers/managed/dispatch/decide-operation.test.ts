import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../../test/support/transcripts.ts'
import { OperationPlayer } from './operation.testing.ts'

describe('operations that are dispatched to workers', () =>
  testTranscripts(join(import.meta.dirname, 'testdata', 'operation'), () => new OperationPlayer()))
