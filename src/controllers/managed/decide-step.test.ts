import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../test/support/transcripts.ts'
import { SequencePlayer } from './sequence.testing.ts'

describe('the sequence of a managed resource', () => testTranscripts(join(import.meta.dirname, 'testdata'), () => new SequencePlayer()))
