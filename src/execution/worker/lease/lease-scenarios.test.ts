import { join } from 'node:path'
import { describe } from 'node:test'
import { testTranscripts } from '../../../../test/support/transcripts.ts'
import { HostPlayer } from '../simulation/host-player.testing.ts'
import { SimulatedHost } from '../simulation/simulated-host.testing.ts'

// The commands are explained in host-player.testing.ts. Each transcript fails if an engine may run when its worker is declared lost (invariant 2).
describe("a worker's Lease on virtual time", () =>
  testTranscripts(join(import.meta.dirname, 'testdata'), () => new HostPlayer(new SimulatedHost({ showsMessages: false }))))
