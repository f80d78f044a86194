import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../test/support/transcripts.ts'
import { createScenario } from './simulation/scenario.testing.ts'

describe('dispatch on virtual time', () => testTranscripts(join(import.meta.dirname, 'testdata'), createScenario))
