import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../../test/support/transcripts.ts'
import { StackPlayer } from './observe-stack.testing.ts'

describe('a managed resource follows its Stack', () =>
  testTranscripts(join(import.meta.dirname, 'testdata', 'stack'), () => new StackPlayer()))
